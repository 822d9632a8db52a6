"""Forgets facts and messages everywhere, also in the index, in traces and in files, and brings them back."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.tracing.recorder import Recorder
from agent.tracing.store.traces import Traces
from memory.errors import MemoryFault
from memory.forgetting.forget import Forgetting
from memory.forgetting.purge import Purge
from memory.index.sync import IndexSync
from memory.records import ForgetCandidate, Forgotten, Memory
from memory.sql.memories import MemoryStore


@dataclass(frozen=True)
class ForgetService:
    forgetting: Forgetting
    purge: Purge
    store: MemoryStore
    sync: IndexSync
    home: Path
    traces: Traces
    recorder: Recorder

    async def forget(self, memory: Memory, user: str, asked_in: str | None = None) -> Forgotten:
        """Forget the memory, with everything that shows it: see `memory.forgetting.reach`. `asked_in` is the
        message in which the person asked for it, which goes too."""
        return await self._finished(*await self.forgetting.forget(memory, user, asked_in=asked_in))

    async def forget_message(self, id: str, user: str, asked_in: str | None = None) -> Forgotten:
        """Forget one of the user's messages, and what it alone states; or a reply to them. Raises NotFound
        for anybody else's."""
        return await self._finished(*await self.forgetting.forget_message(id, user, asked_in=asked_in))

    async def preview(self, candidate: ForgetCandidate, user: str) -> ForgetCandidate:
        """The candidate with the messages and the replies that would go with it."""
        return await self.forgetting.preview(candidate, user)

    async def _finished(self, receipt: Forgotten, ids: Collection[str]) -> Forgotten:
        """Tell the index and the traces, and complete the receipt."""
        self.store.forget_aliases()
        self.sync.wake()
        with suppress(MemoryFault):  # a trace is not read while a row that it shows is hidden
            await self.recorder.forget_rows(ids)
            receipt = replace(receipt, traces=await self.traces.showing(ids))
        if receipt.undo_id is None:
            await self.purge_due()
        return receipt

    async def undo(self, id: str, user: str) -> Forgotten:
        back = await self.forgetting.undo(id, user)
        self.store.forget_aliases()
        self.sync.wake()
        return back

    async def make_private(self, memory: Memory, user: str) -> None:
        await self.forgetting.make_private(memory, user)
        self.store.forget_aliases()
        self.sync.wake()

    async def purge_due(self) -> None:
        """Delete for good what was forgotten and can no longer be brought back: first from traces and files,
        while its rows tell what to look for. Where those cannot be reached, all of it is deleted later."""
        for forgetting in await self.purge.due():
            with suppress(MemoryFault):
                ids, texts = await self.purge.shown_by(forgetting)
                await asyncio.to_thread(blank_lines_of, self.home, None, ids)
                await asyncio.to_thread(blank_typed, self.home, texts)
                await self.traces.forget(ids)
                await self.purge.delete(forgetting)
