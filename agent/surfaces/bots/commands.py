"""The commands and buttons with which people see, correct and delete their memories.

Only the person who asked sees an answer, unless it is `public`. It contains only what may be read in the
place they asked in.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from typing import Any, NamedTuple, cast, get_args

from agent.companion import Companion
from agent.surfaces.bots.answers import (
    Answer,
    Asker,
    Button,
    Handler,
    Item,
    Words,
    console_link,
    describe_error,
    forget_preview,
    new_memories,
    receipt_item,
    shorten,
    task_item,
)
from agent.surfaces.bots.personal_commands import IN_PRIVATE, PersonalCommands, linked_accounts
from agent.surfaces.bots.platform import Content
from agent.types.records_json import describe_forgotten
from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.people.places import LISTENING, Listening
from memory.records import ForgetCandidate, ForgetKind, Memory
from memory.sql.memories.store import tellers

MOST_LISTED = 8
"""Memories in one list."""
NOT_THEIRS = "That no longer exists, or somebody else told me the same."
NO_TEXT = Answer("There is no text in that message.")
AUTHOR_OPTED_OUT = "Its author has asked me to store nothing of theirs here."
NOT_OPEN = "That task is no longer open, or it is somebody else's."
NOT_YOURS_TO_FORGET = "That is forgotten already, or somebody else told me it."
STANDS = "My replies in the chat are deleted too. Delete your own messages there yourself."
UNDO_OVER = "That can no longer be undone: it is restored already, or deleted for good."
NOT_ALLOWED = "Only people who manage this channel can set that."
LISTENS: dict[Listening, str] = {
    "mentions": "Here I answer messages that mention me or reply to me. I store no others.",
    "everything": "Here I answer every message, and remember it for this channel.",
    "nothing": "Here I answer no message.",
}


class Argument(NamedTuple):
    name: str
    description: str
    required: bool = False


class Command(NamedTuple):
    name: str
    description: str
    argument: Argument | None = None
    in_private: bool = False
    """Whether it works in direct messages alone."""


COMMANDS = (
    Command("memories", "What I remember here, newest first.", Argument("query", "Only what bears on this")),
    Command("remember", "Have me remember something.", Argument("content", "One fact, as a sentence", True)),
    Command("forget", "Have me forget one thing.", Argument("what", "Words of it, or its id", True)),
    Command("forget-me", "Delete everything I store about you, everywhere."),
    Command("privacy", "What I store, who may read it, and where it goes."),
    Command("tasks", "Your open tasks."),
    Command(
        "checkins",
        "Let me ask you how things went.",
        Argument("to", "on or off; unset: what is planned"),
        in_private=True,
    ),
    Command("context", "What I know of you here."),
    Command("trace", "What I did about your last message here."),
    Command(
        "link", "Link another account of yours with this one.", Argument("code", "The other one's code"), True
    ),
    Command("unlink", "Unlink this account from your others.", in_private=True),
)
"""The commands; `Commands` or `PersonalCommands` has a method for each."""
_IN_PRIVATE = frozenset(command.name for command in COMMANDS if command.in_private)
REMEMBER_THIS = "Remember this"
"""In the menu of a message; it calls `Commands.remember_message`."""
LISTEN = Command("listen", "What I listen to in this channel.", Argument("to", "Unset: say how it stands"))


def _answering(method: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """Return an answer where the method raises."""

    @wraps(method)
    async def answering(*positional: Any, **options: Any) -> Answer:
        try:
            return await method(*positional, **options)
        except Exception as error:
            return Answer(NOT_THEIRS if isinstance(error, NotFound) else describe_error(error))

    return answering


class Commands:
    """Runs commands and buttons. No method raises: an error becomes an answer."""

    def __init__(self, pet: Companion) -> None:
        self._pet = pet
        personal = PersonalCommands(pet)
        self._handlers: dict[str, Handler] = {
            "memories": self._memories,
            "remember": self._remember,
            "forget": self._forget,
            "tasks": self._tasks,
            **personal.commands,
        }
        self._actions: dict[str, Handler] = {
            "delete": self._ask_to_forget,
            **{kind: partial(self._forget_confirmed, kind) for kind in get_args(ForgetKind)},
            "restore": self._restore,
            "undo": self._undo,
            "private": self._make_private,
            "done": self._finish_task,
            "snooze": self._snooze,
            "more": self._page,
            **personal.actions,
        }

    @_answering
    async def run(self, name: str, asker: Asker, text: str = "") -> Answer:
        """Run one of `COMMANDS`. `text` is its argument."""
        if not asker.place.private and name in _IN_PRIVATE:
            return Answer(IN_PRIVATE)
        return await self._handlers[name](asker, text.strip())

    @_answering
    async def press(self, asker: Asker, action: str, value: str = "") -> Answer:
        act = self._actions.get(action)
        return await act(asker, value) if act else Answer("All right, nothing was changed.", replaces=True)

    @_answering
    async def remember_message(self, asker: Asker, content: Content, by: str) -> Answer:
        """Remember a message that the user `by` wrote; what somebody else wrote with their name."""
        is_own = by == asker.user
        if not await self._pet.people.places.keeps(by, asker.place):
            return Answer(AUTHOR_OPTED_OUT)
        return await self._remember(
            asker, content.text if is_own else f"{content.author} said: “{content.text}”"
        )

    @_answering
    async def listen(self, asker: Asker, text: str, may_set: Callable[[], Awaitable[bool]]) -> Answer:
        """Show which messages the bot answers in the place, or set it, in front of everybody there, if
        `may_set()` allows it."""
        places, choice = self._pet.people.places, text.strip().lower()
        listening = next((setting for setting in LISTENING if setting == choice), None)
        if choice and listening is None:
            return Answer(f"Say {asker.prefix}{LISTEN.name} and one of: {', '.join(LISTENING)}.")
        if asker.place.private:
            return Answer("In direct messages I answer everything.")
        if listening:
            if not await may_set():
                return Answer(NOT_ALLOWED)
            await places.set(asker.place, listening, asker.user, self._pet.clock())
            return Answer(f"{asker.name or 'Somebody'} has set: {LISTENS[listening]}", public=True)
        return Answer(LISTENS[await places.listening(asker.place)])

    async def _memories(self, asker: Asker, query: str) -> Answer:
        if not query:
            return await self._page(asker, "0")
        hits = await self._pet.search_memories(query, limit=MOST_LISTED * 2, **asker.scope)
        memories = [hit.memory for hit in hits if hit.memory is not None][:MOST_LISTED]
        if not memories:
            return Answer("I remember nothing of that here.")
        return Answer("This is what I remember of that:", await self._items(memories, asker))

    async def _page(self, asker: Asker, skip: str) -> Answer:
        """List the memories after so many newer ones."""
        first = int(skip) if skip.isdecimal() else 0
        newest = await self._pet.memories.list(limit=first + MOST_LISTED + 1, **asker.scope)
        if not newest:
            return Answer("I remember nothing here yet.")
        buttons = [Button("Back", "more", str(max(0, first - MOST_LISTED)))] if first else []
        if len(newest) > first + MOST_LISTED:
            buttons.append(Button("More", "more", str(first + MOST_LISTED)))
        private = (
            await console_link(self._pet, asker.user, asker.place)
            if asker.place.private
            else ("What you told me in private I show in our direct messages.",)
        )
        return Answer(
            "This is what I remember:",
            await self._items(newest[first : first + MOST_LISTED], asker),
            note=private,
            buttons=tuple(buttons),
            replaces=True,
        )

    async def _items(self, memories: Sequence[Memory], asker: Asker) -> tuple[Item, ...]:
        """Show memories and, if they came from somebody else, their name. Each has a button to forget it if
        the asker stated it, on this account or a linked one, and one to make it private if they stated it in
        this place and nobody else did."""
        accounts = await linked_accounts(self._pet, asker)
        mine = {user_key(account) for account in (asker.user, *accounts)}
        authors = {memory.user_id for memory in memories} - {asker.user, *accounts}
        audience = Audience.of(asker.user, asker.place)
        names = await self._pet.components.transcript.speakers.names(authors, audience) | accounts
        items = list[Item]()
        for one in memories:
            stated = not mine.isdisjoint(tellers(one.owners, one.user_id))
            local = one.user_id == asker.user and not asker.place.private and str(asker.place) == one.place
            buttons = [Button("Forget", "delete", one.id)] if stated else []
            buttons += [Button("Make private", "private", one.id)] if stated and local else []
            until: Words = (", until ", one.expires_at) if one.expires_at else ()
            by: Words = (f"{names[one.user_id]}, ",) if names.get(one.user_id) else ()
            items.append(Item(shorten(one.content), (*by, one.created_at, *until), tuple(buttons)))
        return tuple(items)

    async def _remember(self, asker: Asker, content: str) -> Answer:
        if not content:
            return Answer(f"Say what I shall remember: {asker.prefix}remember Ana prefers tea")
        people = await self._pet.people.named(content, **asker.scope)
        subjects = people or ([asker.name] if asker.name else [])
        decision = await self._pet.remember(content, subjects=subjects, author=asker.name, **asker.scope)
        if not (new := new_memories([decision])):
            return Answer(f"Nothing new to remember: {decision.reason}.")
        readers = "between us" if asker.place.private else "for everybody in this channel to ask me about"
        return Answer(f"Remembered, {readers}:", tuple(receipt_item(one, asker.place) for one in new))

    async def _forget(self, asker: Asker, text: str) -> Answer:
        """Ask whether to forget a memory by its id. For any other text, list the matching memories to choose
        from."""
        if len(text) >= 8 and " " not in text:
            with suppress(NotFound):
                return await self._ask_to_forget(asker, text)
        matches = await self._memories(asker, text)
        return Answer("Which one shall I forget?", matches.items, matches.note) if matches.items else matches

    async def _ask_to_forget(self, asker: Asker, value: str) -> Answer:
        """Show what would be deleted, with a button to confirm. The value is an id and, if it is no memory, a
        full stop and its kind. Raises NotFound for what the asker did not state."""
        id, _, kind = value.partition(".")
        if not kind:
            memory = await self._pet.memories.get(id, **asker.scope)
            mine = {user_key(one) for one in (asker.user, *await linked_accounts(self._pet, asker))}
            if mine.isdisjoint(tellers(memory.owners, memory.user_id)):
                raise NotFound(NOT_THEIRS)
        of = cast("ForgetKind", kind or "memory")
        return forget_preview(await self._pet.memories.preview_forget(id, kind=of, **asker.scope))

    async def _forget_confirmed(self, kind: ForgetKind, asker: Asker, value: str) -> Answer:
        """Forget a candidate whose preview the asker has seen, and the message that asked to forget it. Say
        until when it can be undone, and offer to forget related memories."""
        id, asked_in = value.split(".")
        candidate = ForgetCandidate(id, kind, "", self._pet.clock(), asked_in)
        receipts = await self._pet.memories.forget_confirmed([candidate], **asker.scope)
        if not receipts:
            return Answer(NOT_YOURS_TO_FORGET, outcome="forgotten")
        [receipt], text = receipts, "Forgotten"
        with suppress(NotFound):
            if receipt.memory:
                await self._pet.memories.get(receipt.id, **asker.scope)
                text = "Forgotten for you; somebody else told me the same here"
        repeat = len(receipt.kept)
        stay = f"Of my replies that stay, {repeat} may repeat it in other words. " if repeat else ""
        undo: Words = (
            ("It can be undone until ", receipt.undo_until, ". ")
            if receipt.undo_id and receipt.undo_until
            else ()
        )
        offered = "\nI also remember this. Forget it as well?" if receipt.offered else ""
        return Answer(
            f"{text}: {shorten(receipt.content)}{offered}",
            tuple(
                Item(shorten(one.content), buttons=(Button("Forget", "delete", f"{one.id}.{one.kind}"),))
                for one in receipt.offered
            ),
            note=(f"Deleted: {describe_forgotten(replace(receipt, kept=()))}. ", *undo, f"{stay}{STANDS}"),
            buttons=(Button("Undo", "restore", receipt.undo_id),) if receipt.undo_id else (),
            outcome="forgotten",
        )

    async def _restore(self, asker: Asker, id: str) -> Answer:
        try:
            back = await self._pet.memories.undo_forget(id, user=asker.user)
        except NotFound:
            return Answer(UNDO_OVER, replaces=True)
        return Answer(f"I remember it again: {shorten(back.content)}", replaces=True)

    async def _tasks(self, asker: Asker, _: str) -> Answer:
        tasks = await self._pet.tasks.list(**asker.scope)
        if not tasks:
            return Answer("No task is open here.")
        return Answer("Your open tasks:", tuple(map(task_item, tasks[:MOST_LISTED])))

    async def _undo(self, asker: Asker, id: str) -> Answer:
        memory = await self._pet.memories.get(id, **asker.scope)  # NotFound if it has been replaced since
        step = await self._pet.memories.undo(memory.id, **asker.scope)
        return Answer(f"Undone. I remember again: {shorten(step.new_content or '')}", outcome="undone")

    async def _make_private(self, asker: Asker, id: str) -> Answer:
        text = shorten((await self._pet.memories.make_private(id, **asker.scope)).content)
        note = "My reply in the channel is deleted; your own message there stays."
        return Answer(f"Now private: {text}", note=(note,), outcome="made private")

    async def _finish_task(self, asker: Asker, id: str) -> Answer:
        try:
            change = await self._pet.tasks.update(id=id, status="done", **asker.scope)
        except NotFound:
            return Answer(NOT_OPEN)
        return Answer(f"Done: {shorten(change.task.description)}", outcome="done")

    async def _snooze(self, asker: Asker, value: str) -> Answer:
        """Remind of a task again. The value says when, by the person's clock."""
        id, _, due = value.partition(".")
        open_ids = {task.id for task in await self._pet.tasks.list(**asker.scope)}
        if id not in open_ids:
            return Answer(NOT_OPEN)
        task = (await self._pet.tasks.update(id=id, due=due, **asker.scope)).task
        when = ("again ", task.due) if task.due else ()
        return Answer(f"I remind you again: {shorten(task.description)}", note=when, outcome="snoozed")
