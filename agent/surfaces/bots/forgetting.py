"""Asks what a person meant to forget, forgets what they confirm or delete, and undoes it.

Buttons hold all ids that they need, so they work after a restart. What somebody else told is not found.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal

from agent.companion import Companion
from agent.surfaces.bots.answers import Answer, Asker, Button, Item, ReceiptUpdate, expiry, shorten
from agent.surfaces.records_json import taken_with
from memory.errors import NotFound
from memory.records import ForgetCandidate, Forgotten

QUESTION = "Shall I forget this?"
NOTHING = "Nothing that you told me matches this, so nothing is forgotten."
GONE = "That is not yours to forget, or it is forgotten already."
ID_PREFIX = 22
"""Characters of a second id in a button's value: enough to find it, and both ids fit."""


@dataclass(frozen=True)
class Forgetting:
    pet: Companion
    zone: Callable[[Asker], Awaitable[tzinfo | None]]

    async def question(self, candidates: Sequence[ForgetCandidate], asker: Asker) -> Answer:
        """Ask which of `Reply.forget` to forget, with a button for each."""
        zone = await self.zone(asker)
        items = [
            Item(
                shorten(candidate.content),
                f"{candidate.created_at.astimezone(zone):%Y-%m-%d}",
                (Button("Forget", candidate.kind, _joined([candidate.id, candidate.asked_in])),),
            )
            for candidate in candidates
        ]
        return Answer(QUESTION if items else NOTHING, tuple(items))

    async def confirm(self, kind: Literal["memory", "message"], asker: Asker, value: str) -> Answer:
        """Forget a candidate, and the message that asked."""
        id, asked_in = value.split(".")
        candidate = ForgetCandidate(id, kind, "", self.pet.clock(), asked_in)
        receipts = await self.pet.forget([candidate], user=asker.user, place=asker.place)
        if not receipts:
            return Answer(GONE, update=ReceiptUpdate("", "forgotten"))
        return await self._answer(asker, receipts)

    async def delete(self, asker: Asker, id: str) -> Answer:
        """Forget a memory."""
        return await self._answer(
            asker, [await self.pet.delete_memory(id, user=asker.user, place=asker.place)]
        )

    async def restore(self, asker: Asker, value: str) -> Answer:
        back = [await self.pet.undo_forget(id, user=asker.user) for id in value.split(".")]
        return Answer(f"I remember it again: {shorten(back[0].content) or 'your message'}")

    async def _answer(self, asker: Asker, receipts: Sequence[Forgotten]) -> Answer:
        """Say what was taken, and until when it can be undone."""
        named, text = receipts[0].memory, "Forgotten"
        with suppress(NotFound):
            if named:
                await self.pet.memory(named.id, user=asker.user, place=asker.place)
                text = "Forgotten as yours; somebody else said it here too"
        content = shorten(receipts[0].content)
        until = receipts[0].undo_until
        ids = [receipt.undo_id for receipt in receipts if receipt.undo_id]
        undo = f"It can be undone {expiry(until, self.pet.clock(), await self.zone(asker))}. " if ids else ""
        return Answer(
            f"{text}: {content or 'your message'}",
            note=f"Taken: {taken_with(*receipts)}. {undo}What stands in the chat you delete there.",
            buttons=(Button("Undo", "restore", _joined(ids)),) if ids else (),
            update=ReceiptUpdate(content, "forgotten"),
        )


def _joined(ids: Sequence[str]) -> str:
    """Return one or two ids as a button's value. Prefixes are enough to find messages and undoable steps."""
    first, *second = ids
    return ".".join([first, *(id[:ID_PREFIX] for id in second)])
