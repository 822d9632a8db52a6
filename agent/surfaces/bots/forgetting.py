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
"""Characters of the id of the message that asked, in a button's value: enough to find it, and both fit."""


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
                (Button("Forget", candidate.kind, f"{candidate.id}.{candidate.asked_in[:ID_PREFIX]}"),),
            )
            for candidate in candidates
        ]
        return Answer(QUESTION if items else NOTHING, tuple(items))

    async def confirm(self, kind: Literal["memory", "message"], asker: Asker, value: str) -> Answer:
        """Forget a candidate, and the message that asked."""
        id, asked_in = value.split(".")
        candidate = ForgetCandidate(id, kind, "", self.pet.clock(), asked_in)
        receipts = await self.pet.memories.forget_confirmed([candidate], user=asker.user, place=asker.place)
        if not receipts:
            return Answer(GONE, update=ReceiptUpdate("", "forgotten"))
        return await self._answer(asker, receipts[0])

    async def delete(self, asker: Asker, id: str) -> Answer:
        """Forget a memory."""
        return await self._answer(
            asker, await self.pet.memories.forget(id, user=asker.user, place=asker.place)
        )

    async def restore(self, asker: Asker, id: str) -> Answer:
        back = await self.pet.memories.undo_forget(id, user=asker.user)
        return Answer(f"I remember it again: {shorten(back.content) or 'your message'}")

    async def _answer(self, asker: Asker, receipt: Forgotten) -> Answer:
        """Say what was taken, and until when it can be undone."""
        text = "Forgotten"
        with suppress(NotFound):
            if receipt.memory:
                await self.pet.memories.get(receipt.id, user=asker.user, place=asker.place)
                text = "Forgotten as yours; somebody else said it here too"
        content = shorten(receipt.content)
        until = expiry(receipt.undo_until, self.pet.clock(), await self.zone(asker))
        undo = f"It can be undone {until}. " if receipt.undo_id else ""
        return Answer(
            f"{text}: {content}" + ("\nAlso remembered. Forget this too?" if receipt.near else ""),
            tuple(
                Item(shorten(memory.content), buttons=(Button("Forget", "delete", memory.id),))
                for memory in receipt.near
            ),
            note=f"Taken: {taken_with(receipt)}. {undo}What stands in the chat you delete there.",
            buttons=(Button("Undo", "restore", receipt.undo_id),) if receipt.undo_id else (),
            update=ReceiptUpdate(content, "forgotten"),
        )
