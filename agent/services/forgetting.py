"""Forgets facts and messages everywhere, also in the index and in traces, and brings them back."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memory.erasure.expiry import Forgetting
from memory.erasure.statements import StatementForgetting
from memory.errors import MemoryFault
from memory.index.sync import IndexSync
from memory.records import Forgotten, Memory
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript


@dataclass(frozen=True)
class ForgetService:
    expiry: Forgetting
    statements: StatementForgetting
    store: MemoryStore
    transcript: Transcript
    sync: IndexSync
    forget_outside: Callable[[str], Awaitable[int]]
    """Runs the job of a forgetting that removes the rest from traces."""
    bring_back_traces: Callable[[], Awaitable[None]]

    async def forget(self, memory: Memory, user: str, asked_in: str | None = None) -> Forgotten:
        """Forget the memory, with everything that shows it: see `memory.erasure.statements`. `asked_in` is
        the message in which the person asked for it, which goes too."""
        return await self._finished(*await self.statements.forget(memory, user, asked_in=asked_in))

    async def forget_message(self, id: str, user: str, asked_in: str | None = None) -> Forgotten:
        """Forget one of the user's messages, and the memories that rest on it alone. Raises NotFound for
        anybody else's."""
        message = await self.transcript.own(id, user)
        return await self._finished(
            *await self.statements.forget_message(message.id, user, asked_in=asked_in)
        )

    async def _finished(self, receipt: Forgotten, job: str) -> Forgotten:
        """Remove what was forgotten from the index and the traces, and complete the receipt."""
        self.store.forget_aliases()
        self.sync.wake()
        return replace(receipt, traces=await self.forget_outside(job))

    async def with_near(self, receipt: Forgotten, known: Sequence[Memory], user: str) -> Forgotten:
        """The receipt with those of the `known` memories that are near what was taken."""
        return replace(receipt, near=await self.statements.near(receipt, known, user))

    async def undo(self, id: str, user: str) -> Forgotten:
        back = await self.statements.undo(id, user)
        self.store.forget_aliases()
        self.sync.wake()
        with suppress(MemoryFault):  # the worker does it later
            await self.bring_back_traces()
        return back

    async def make_private(self, memory: Memory, user: str) -> None:
        job = await self.expiry.make_private(memory, user)
        self.sync.wake()
        await self.forget_outside(job)
