"""The commands of a bot, whatever the platform: what is remembered, for the person it belongs to.

Each answer is for the eyes of who asked only, and yet within what may be read where they ask: in a channel
nothing is shown that was said in private.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from agent.surfaces.bots.answers import (
    DELETE,
    DONE,
    ERASE,
    KEEP,
    MAKE_PRIVATE,
    MORE,
    UNDO,
    Answer,
    Button,
    Item,
    Settled,
)
from agent.surfaces.bots.faults import told
from agent.surfaces.bots.items import memory_item, receipt_item, short, task_item
from agent.surfaces.bots.receipts import Receipt, receipts_of
from agent.surfaces.bots.tracing import last_trace
from agent.surfaces.bots.wording import context_items, erasure_answer, privacy_items
from memory.audience import PRIVATE, Place
from memory.errors import NotFound
from memory.people.places import Listening

if TYPE_CHECKING:
    from agent.companion import Companion

PAGE = 8
"""Memories that are shown at a time."""
NOT_THEIRS = "That is not there any more, or somebody else said it too."
_HEARS: dict[Listening, str] = {
    "mentions": "Here I answer who mentions me or replies to me. Nothing else is read or kept.",
    "everything": "Here I answer everything that is written, and remember it for this channel.",
    "nothing": "Here I answer nobody.",
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and where."""

    user: str
    place: Place = PRIVATE


class Commands:
    """Every method answers; none raises."""

    def __init__(self, pet: "Companion") -> None:
        self._pet = pet
        self._places = pet.services.places

    async def memories(self, asker: Asker, query: str = "", skip: int = 0) -> Answer:
        """/memories: the newest, or those that bear on the query; with a button to take each away."""
        return await _answered(self._memories(asker, query.strip(), skip))

    async def remember(self, asker: Asker, content: str) -> Answer:
        """/remember: one fact, kept for good."""
        return await _answered(self._remember(asker, content))

    async def forget(self, asker: Asker, what: str) -> Answer:
        """/forget: one memory by its id; otherwise those the words can mean, to choose from."""
        return await _answered(self._forget(asker, what.strip()))

    async def forget_me(self, asker: Asker) -> Answer:
        """/forget-me: asks whether everything is meant."""
        return Answer(
            "This takes away everything I keep of you, everywhere: memories, messages, summaries, tasks and "
            "what I know of you. It cannot be undone.",
            buttons=(Button("Forget me", ERASE, style="danger"), Button("Keep it", KEEP)),
        )

    async def privacy(self, asker: Asker) -> Answer:
        """/privacy: what is kept, who may read it, where it goes."""
        return Answer("Your privacy:", privacy_items(self._pet.settings))

    async def tasks(self, asker: Asker) -> Answer:
        """/tasks: the open ones, with a button to finish each."""
        return await _answered(self._tasks(asker))

    async def context(self, asker: Asker) -> Answer:
        """/context: what is known of the person as a whole."""
        return await _answered(self._context(asker))

    async def trace(self, asker: Asker) -> Answer:
        """/trace: what was done about the person's last message here."""
        return await _answered(last_trace(self._pet, asker))

    async def listen(self, asker: Asker, listening: Listening | None) -> Answer:
        """/listen: set or tell what is listened to here. Who may set it is the platform's to say."""
        return await _answered(self._listen(asker, listening))

    async def press(self, asker: Asker, action: str, value: str = "") -> Answer:
        """A button was pressed."""
        return await _answered(self._press(asker, action, value))

    async def words_of(self, asker: Asker, id: str) -> str | Answer:
        """What a memory says, for its teller to change; an answer where that is not for them to do."""
        try:
            memory = await self._pet.memory(id, user=asker.user, place=asker.place)
        except NotFound:
            return Answer(NOT_THEIRS)
        except Exception as error:
            return Answer(told(error))
        return memory.content if asker.user == memory.user_id else Answer(NOT_THEIRS)

    async def edit(self, asker: Asker, id: str, content: str) -> Answer:
        """A memory is to say this instead."""
        return await _answered(self._edit(asker, id, content))

    async def receipt_items(self, receipts: tuple[Receipt, ...], asker: Asker) -> tuple[Item, ...]:
        """``remembered X until Friday``, each with buttons to take it back, to change it and, in a channel,
        to take it from there. Raises nothing."""
        try:
            zone = await self._zone(asker)
        except Exception as error:
            told(error)
            zone = None
        return tuple(receipt_item(receipt, asker.place, self._pet.clock(), zone) for receipt in receipts)

    async def _memories(self, asker: Asker, query: str, skip: int) -> Answer:
        if query:
            hits = await self._pet.search_memories(query, user=asker.user, place=asker.place, limit=PAGE * 2)
            found = [hit.memory for hit in hits if hit.memory is not None][:PAGE]
            more = False
        else:
            all_of_it = await self._pet.memories(user=asker.user, place=asker.place, limit=skip + PAGE + 1)
            found, more = all_of_it[skip : skip + PAGE], len(all_of_it) > skip + PAGE
        if not found:
            return Answer("I remember nothing of that here." if query else "I remember nothing here yet.")
        zone = await self._zone(asker)
        return Answer(
            "This is what I remember" + (" of that:" if query else ":"),
            tuple(memory_item(memory, asker.user, self._pet.clock(), zone) for memory in found),
            note="" if asker.place.private else "What you told me in private I show in our direct messages.",
            buttons=(Button("More", MORE, str(skip + PAGE)),) if more else (),
        )

    async def _remember(self, asker: Asker, content: str) -> Answer:
        decision = await self._pet.remember(content, user=asker.user, place=asker.place)
        await self._pet.services.maintenance.try_to_catch_up()
        receipts = receipts_of([decision])
        if not receipts:
            return Answer(f"Nothing new to remember: {decision.reason}.")
        here = "between us" if asker.place.private else "for everybody in this channel to ask me about"
        return Answer(f"Remembered, {here}:", await self.receipt_items(receipts, asker))

    async def _forget(self, asker: Asker, what: str) -> Answer:
        if len(what) >= 8 and " " not in what:
            try:
                memory = await self._pet.memory(what, user=asker.user, place=asker.place)
            except NotFound:
                pass
            else:
                return await self._press(asker, DELETE, memory.id)
        found = await self._memories(asker, what, 0)
        if not found.items:
            return found
        return Answer("Which one shall I forget?", found.items, found.note)

    async def _tasks(self, asker: Asker) -> Answer:
        open_ = await self._pet.services.tasks.list(asker.user, place=_key(asker.place))
        if not open_:
            return Answer("No task is open here.")
        zone = await self._zone(asker)
        return Answer("Your open tasks:", tuple(task_item(task, zone) for task in open_[:PAGE]))

    async def _context(self, asker: Asker) -> Answer:
        known = await self._pet.context(user=asker.user, place=asker.place)
        items = context_items(known)
        return (
            Answer("What I know of you here:", items) if items else Answer("I know nothing of you here yet.")
        )

    async def _listen(self, asker: Asker, listening: Listening | None) -> Answer:
        if asker.place.private:
            return Answer("In direct messages I answer everything.")
        if listening is not None:
            await self._places.set(asker.place, listening, asker.user, self._pet.clock())
        return Answer(_HEARS[await self._places.listening(asker.place)])

    async def _press(self, asker: Asker, action: str, value: str) -> Answer:
        if action in (DELETE, UNDO, MAKE_PRIVATE):
            try:
                return await self._take(asker, action, value)
            except NotFound:
                return Answer(NOT_THEIRS)
        if action == DONE:
            return await self._finish(asker, value)
        if action == MORE:
            return await self._memories(asker, "", int(value) if value.isdecimal() else 0)
        if action == ERASE:
            return erasure_answer(await self._pet.erase(user=asker.user))
        return Answer("All right, nothing was changed.")

    async def _take(self, asker: Asker, action: str, id: str) -> Answer:
        """Away, back, or out of the channel. Raises NotFound where it is not theirs to take."""
        who: Any = {"user": asker.user, "place": asker.place}
        if action == UNDO:
            memory = await self._pet.memory(id, **who)  # what was replaced since is not taken back by this
            step = await self._pet.undo(memory.id, **who)
            settled = Settled(short(step.old_content), "taken back")
            return Answer(f"Taken back. I hold on to: {short(step.new_content or '')}", settled=settled)
        if action == MAKE_PRIVATE:
            text = short((await self._pet.make_private(id, **who)).content)
            still = "What you wrote in the channel stands there as before."
            return Answer(f"Between us now: {text}", note=still, settled=Settled(text, "made private"))
        gone = await self._pet.delete_memory(id, **who)
        settled = Settled(short(gone.content), "forgotten")
        try:
            await self._pet.memory(gone.id, **who)
        except NotFound:
            return Answer(f"Forgotten: {settled.text}", settled=settled)
        return Answer(f"Forgotten as yours; somebody else said it here too: {settled.text}", settled=settled)

    async def _edit(self, asker: Asker, id: str, content: str) -> Answer:
        who: Any = {"user": asker.user, "place": asker.place}
        try:
            old = await self._pet.memory(id, **who)
            decision = await self._pet.update_memory(old.id, content, **who)
        except NotFound:
            return Answer(NOT_THEIRS)
        await self._pet.services.maintenance.try_to_catch_up()
        receipts = receipts_of([decision])
        if not receipts:
            return Answer(f"Nothing was changed: {decision.reason}.")
        items = await self.receipt_items(receipts, asker)
        return Answer("Changed to:", items, settled=Settled(short(old.content), "changed"))

    async def _finish(self, asker: Asker, id: str) -> Answer:
        now, here = self._pet.clock(), _key(asker.place) or ""
        try:
            change = await self._pet.services.tasks.update(asker.user, "", "done", id=id, now=now, place=here)
        except NotFound:
            return Answer("That task is not open any more.")
        return Answer(f"Done: {short(change.task.description)}")

    async def _zone(self, asker: Asker) -> tzinfo:
        return (await self._pet.context(user=asker.user, place=asker.place)).zone


async def _answered(doing: Awaitable[Answer]) -> Answer:
    try:
        return await doing
    except Exception as error:
        return Answer(told(error))


def _key(place: Place) -> str | None:
    return None if place.private else place.key
