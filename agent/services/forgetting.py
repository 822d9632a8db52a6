"""Forgets facts and messages everywhere, also in the index, in traces and in files, and restores them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.services.outside_sql import blank_lines_of, blank_typed
from agent.types.client import OTHER_MEMORY
from memory.audience import PRIVATE, Audience, Place
from memory.errors import MemoryFault, NotFound
from memory.forgetting.forget_and_undo import make_private
from memory.process.spans import note_rows
from memory.records import ForgetCandidate, ForgetKind, Forgotten, Memory
from memory.sql.hidden import hidden_in
from memory.sql.jobs.deliveries import quote_id

if TYPE_CHECKING:
    from agent.wiring.components import Components

ELSEWHERE = "the program that you talk with keeps memories of its own: forget it there too"
MOST_OFFERED = 5
"""The most related rows that a receipt offers; those on the same messages come first."""


@dataclass(frozen=True)
class ForgetService:
    parts: "Components"

    async def forget(
        self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE, asked_in: str = ""
    ) -> Forgotten:
        """Forget something that the user stated, with its cascade: see `memory.forgetting.cascade`. The
        message `asked_in`, which asks for it, is forgotten too. The receipt offers related rows that are
        readable in the place. In private, what a linked account stated can be forgotten too. Raises NotFound
        for what other people stated."""
        named, teller = await self._named(kind, id, user, place)
        if teller != user:
            receipt = await self._forget(named, teller, place, "")
            with suppress(NotFound):  # the message is this account's
                await self._forget((await self._named("message", asked_in, user, place))[0], user, place, "")
            return receipt
        return await self._forget(named, user, place, asked_in)

    async def _named(self, kind: ForgetKind, id: str, user: str, place: Place) -> tuple[ForgetCandidate, str]:
        """Return the row to forget, and the account that it belongs to. Raises NotFound."""

        async def of(account: str) -> tuple[ForgetCandidate, str]:
            return await self.parts.forgetting.named(kind, id, account, place), account

        if not place.private:
            return await of(user)
        if kind != "memory":
            return await self.parts.links.as_teller(user, of)
        return await of(await self._teller(id, user))

    async def _teller(self, id: str, user: str) -> str:
        """Return the account that stated a memory: a linked one only if the user did not state it."""
        audience = await self.parts.links.audience(user, PRIVATE)
        if not audience.besides:
            return user
        memory = await self.parts.store.get(id, audience, self.parts.clock())
        return self.parts.links.teller(memory, user, audience)

    async def _forget(self, named: ForgetCandidate, user: str, place: Place, asked_in: str) -> Forgotten:
        kind = named.kind
        near: tuple[ForgetCandidate, ...] = ()
        if kind != "conversation":
            note_rows([named.id])  # a trace of this call has its words as search terms
            with suppress(MemoryFault):
                near = await self.parts.forget_requests.related(named, user, Audience.of(user, place))
        receipt, ids = await self.parts.forgetting.forget(kind, named.id, user, place, asked_in=asked_in)
        self.parts.store.forget_aliases()
        self.parts.sync.wake()
        with suppress(MemoryFault):  # traces that show a hidden row are not readable anyway
            await self.parts.recorder.forget_rows(ids)
            receipt = replace(receipt, traces=await self.parts.traces.showing(ids, user))
        if OTHER_MEMORY in await self.parts.figures.totals(user):
            receipt = replace(receipt, elsewhere=ELSEWHERE)
        left = await self.offered([replace(receipt, offered=(*receipt.offered, *near))])
        if receipt.undo_id is None:
            with suppress(MemoryFault):  # it stays hidden; the schedule retries and logs the error
                await self.purge_due()
        return left[0]

    async def offered(self, receipts: Sequence[Forgotten]) -> list[Forgotten]:
        """Limit each receipt to `MOST_OFFERED` offered rows, without rows that are already forgotten."""
        ids = {one.id for receipt in receipts for one in receipt.offered}
        gone = await hidden_in(self.parts.store.database, ids)
        left = [[one for one in receipt.offered if one.id not in gone] for receipt in receipts]
        pairs = zip(receipts, left, strict=True)
        return [replace(receipt, offered=tuple(found[:MOST_OFFERED])) for receipt, found in pairs]

    async def preview(
        self, kind: ForgetKind, id: str, user: str, place: Place = PRIVATE, asked_in: str = ""
    ) -> ForgetCandidate:
        """Return what `forget` would remove along with it: the messages, and the number of replies."""
        named, teller = await self._named(kind, id, user, place)
        return await self.parts.forgetting.preview(replace(named, asked_in=asked_in), teller)

    async def forget_quotes(self, origin: str) -> None:
        """Empty the traces that quote a message which was deleted on its chat platform."""
        await self.parts.recorder.forget_rows([quote_id(origin)])
        await self.parts.traces.forget([quote_id(origin)])

    async def undo(self, id: str, user: str) -> Forgotten:
        back = await self.parts.links.as_teller(user, lambda one: self.parts.forgetting.undo(id, one))
        self.parts.store.forget_aliases()
        self.parts.sync.wake()
        return back

    async def make_private(self, memory: Memory, user: str) -> None:
        user = await self._teller(memory.id, user)
        await make_private(self.parts.forgetting.database, self.parts.forgetting.clock, memory, user)
        self.parts.store.forget_aliases()
        self.parts.sync.wake()

    async def purge_due(self) -> None:
        """Purge what was forgotten and can no longer be restored. A forgetting that fails does not stop the
        others: its error is raised at the end, and it is retried later."""
        faults: list[MemoryFault] = []
        for forgetting in await self.parts.purge.due():
            try:
                await self._delete(forgetting)
            except MemoryFault as fault:
                faults.append(fault)
        if faults:
            raise faults[0]

    async def _delete(self, forgetting: str) -> None:
        """Purge one forgetting. Traces and files come first: the rows list the texts to look for there."""
        ids, texts = await self.parts.purge.shown_by(forgetting)
        await asyncio.to_thread(blank_lines_of, self.parts.settings.home, None, ids)
        await asyncio.to_thread(blank_typed, self.parts.settings.home, texts)
        await self.parts.traces.forget(ids)
        await self.parts.purge.delete(forgetting)
