"""The commands of a bot, whatever the platform: what is remembered, for the person it belongs to.

Each answer is for the eyes of who asked only, and yet within what may be read where they ask: in a channel
nothing is shown that was said in private.
"""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from agent.surfaces.bots.answers import Answer, Button, Item
from agent.surfaces.bots.faults import told
from agent.surfaces.bots.receipts import Receipt, receipts_of, until
from agent.surfaces.bots.wording import context_items, erasure_answer, privacy_items
from memory.audience import PRIVATE, Audience, Place, user_key
from memory.errors import NotFound
from memory.places import Listening, Places
from memory.records import Memory, Task
from memory.zones import in_zone

if TYPE_CHECKING:
    from agent.companion import Companion

PAGE = 8
"""Memories that are shown at a time."""
LONGEST_LINE = 300
"""Characters of a memory or task in a list."""

UNDO, DELETE, MORE, DONE, ERASE, KEEP = "undo", "delete", "more", "done", "erase", "keep"
"""What buttons do."""
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
        self._places = Places(pet.database)

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

    async def listen(self, asker: Asker, listening: Listening | None) -> Answer:
        """/listen: set or tell what is listened to here. Who may set it is the platform's to say."""
        return await _answered(self._listen(asker, listening))

    async def press(self, asker: Asker, action: str, value: str = "") -> Answer:
        """A button was pressed."""
        return await _answered(self._press(asker, action, value))

    async def receipt_items(self, receipts: tuple[Receipt, ...], asker: Asker) -> tuple[Item, ...]:
        """``remembered X until Friday``, each with a button that takes it back. Raises nothing."""
        try:
            zone = await self._zone(asker)
        except Exception as error:
            told(error)
            zone = None
        return tuple(_receipt_item(receipt, self._pet.clock(), zone) for receipt in receipts)

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
            tuple(_memory_item(memory, asker, self._pet.clock(), zone) for memory in found),
            note="" if asker.place.private else "What you told me in private I show in our direct messages.",
            buttons=(Button("More", MORE, str(skip + PAGE)),) if more else (),
        )

    async def _remember(self, asker: Asker, content: str) -> Answer:
        decision = await self._pet.remember(content, user=asker.user, place=asker.place)
        await self._pet.indexing.try_to_catch_up()
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
        open_ = await self._pet.tasks.list(asker.user, place=_key(asker.place))
        if not open_:
            return Answer("No task is open here.")
        zone = await self._zone(asker)
        return Answer("Your open tasks:", tuple(_task_item(task, zone) for task in open_[:PAGE]))

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
        try:
            if action == DELETE:
                gone = await self._pet.delete_memory(value, user=asker.user)
                return Answer(f"Forgotten: {short(gone.content)}")
            if action == UNDO:
                return Answer(f"Taken back. I hold on to: {short(await self._undo(value, asker.user))}")
        except NotFound:
            return Answer("That is not there any more, or somebody else said it too.")
        if action == DONE:
            return await self._finish(asker, value)
        if action == MORE:
            return await self._memories(asker, "", int(value) if value.isdecimal() else 0)
        if action == ERASE:
            return erasure_answer(await self._pet.erase(user=asker.user))
        return Answer("All right, nothing was changed.")

    async def _finish(self, asker: Asker, id: str) -> Answer:
        now, here = self._pet.clock(), _key(asker.place) or ""
        try:
            change = await self._pet.tasks.update(asker.user, "", "done", id=id, now=now, place=here)
        except NotFound:
            return Answer("That task is not open any more.")
        return Answer(f"Done: {short(change.task.description)}")

    async def _undo(self, id: str, user: str) -> str:
        """What holds again. For the person, and for the place where they said it."""
        memory = await self._pet.memory(id, user=user)
        step = await self._pet.undo(memory.id, user=user)
        where = Place.parse(memory.place)
        if memory.user_id == user and not where.private:
            here = Audience(frozenset({where.key}))
            with suppress(NotFound):  # it had replaced nothing there
                await self._pet.past.undo(memory.id, here, user, self._pet.clock())
            await self._pet.indexing.try_to_catch_up()
        return step.new_content or ""

    async def _zone(self, asker: Asker) -> tzinfo:
        return (await self._pet.context(user=asker.user, place=asker.place)).zone


async def _answered(doing: Awaitable[Answer]) -> Answer:
    try:
        return await doing
    except Exception as error:
        return Answer(told(error))


def short(text: str) -> str:
    """On one line, cut where it gets long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 2]} …"


def _key(place: Place) -> str | None:
    return None if place.private else place.key


def _memory_item(memory: Memory, asker: Asker, now: datetime, zone: tzinfo) -> Item:
    """Somebody else's is theirs to take away."""
    theirs = user_key(asker.user) in memory.owners
    buttons = (Button("Forget", DELETE, memory.id),) if theirs else ()
    said = f"{in_zone(memory.created_at, zone):%Y-%m-%d}"
    return Item(short(memory.content), f"{said}{until(memory.expires_at, now, zone)}", buttons)


def _receipt_item(receipt: Receipt, now: datetime, zone: tzinfo | None) -> Item:
    note = until(receipt.expires_at, now, zone).strip()
    return Item(short(receipt.content), note, (Button("Undo", receipt.undo, receipt.id),))


def _task_item(task: Task, zone: tzinfo) -> Item:
    due = f"due {in_zone(task.due, zone):%Y-%m-%d %H:%M}" if task.due else ""
    state = "in progress" if task.status == "in_progress" else ""
    note = ", ".join(filter(None, (state, due)))
    return Item(short(task.description), note, (Button("Done", DONE, task.id),))
