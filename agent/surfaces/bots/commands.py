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
    Item,
    check_ins_answer,
    console_link,
    context_items,
    erasure_answer,
    forget_preview,
    forgotten_answer,
    memory_item,
    new_memories,
    privacy_answer,
    receipt_item,
    shorten,
    task_item,
    trace_answer,
)
from agent.surfaces.bots.errors import describe_error
from agent.surfaces.bots.platform import Content
from agent.tracing.store.filters import TraceFilter
from agent.types.labels import call_title
from memory.audience import PRIVATE, Audience, user_key
from memory.errors import NotFound
from memory.people.places import LISTENING, Listening
from memory.records import ForgetCandidate, ForgetKind, Forgotten, Memory
from memory.sql.memories.store import tellers

MOST_LISTED = 8
"""Memories in one list."""
NOT_THEIRS = "That no longer exists, or somebody else told me the same."
NO_TEXT = Answer("There is no text in that message.")
AUTHOR_OPTED_OUT = "Its author has asked me to store nothing of theirs here."
NOT_OPEN = "That task is no longer open, or it is somebody else's."
NOT_YOURS_TO_FORGET = "That is forgotten already, or somebody else told me it."
UNDO_OVER = "That can no longer be undone: it is restored already, or deleted for good."
STORED_BEFORE = "What I stored before stays; {prefix}forget-me deletes it."
IN_PRIVATE = "Use this command in our direct messages: what it is about is private."
LINKING = (
    "there, in our direct messages and within ten minutes, use /link {code} on Discord, /hachi-link {code} "
    "on Slack. Show it to nobody: in private each account can then read what I remember of the other."
)
MAX_CODE = 20
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
"""The commands; `Commands` has a method for each."""
_IN_PRIVATE = frozenset(command.name for command in COMMANDS if command.in_private)
REMEMBER_THIS = "Remember this"
"""In the menu of a message; it calls `Commands.remember_message`."""
LISTEN = Command("listen", "What I listen to in this channel.", Argument("to", "Unset: say how it stands"))

Handler = Callable[[Asker, str], Awaitable[Answer]]


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
        self._handlers: dict[str, Handler] = {
            command.name: getattr(self, f"_{command.name.replace('-', '_')}") for command in COMMANDS
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
            "erase": partial(self._erase, False),
            "erase-all": partial(self._erase, True),
            "link": self._link_confirmed,
            "run-call": partial(self._answer_call, True),
            "drop-call": partial(self._answer_call, False),
            "not-now": self._not_now,
            "no-check-ins": self._no_check_ins,
            "keep-nothing": partial(self._keep, False, True),
            "nothing-here": partial(self._keep, False, False),
            "keep-again": partial(self._keep, True, True),
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
        listening = next((known for known in LISTENING if known == choice), None)
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
        found = [hit.memory for hit in hits if hit.memory is not None][:MOST_LISTED]
        if not found:
            return Answer("I remember nothing of that here.")
        return Answer("This is what I remember of that:", await self._items(found, asker))

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
        audience = Audience.of(asker.user, asker.place)
        accounts = await self._accounts(asker)
        others = {memory.user_id for memory in memories} - {asker.user, *accounts}
        names = await self._pet.components.transcript.speakers.names(others, audience) | accounts
        return tuple(memory_item(one, asker, names.get(one.user_id, ""), accounts) for one in memories)

    async def _accounts(self, asker: Asker) -> dict[str, str]:
        """Return the linked accounts of the asker, which count in private, with what people call them."""
        linked = await self._pet.people.accounts(user=asker.user) if asker.place.private else []
        return await self._pet.people.account_names(linked)

    async def _named(self, accounts: Sequence[str]) -> str:
        return ", ".join((await self._pet.people.account_names(accounts)).values())

    async def _remember(self, asker: Asker, content: str) -> Answer:
        if not content:
            return Answer(f"Say what I shall remember: {asker.prefix}remember Ana prefers tea")
        people = await self._pet.people.named(content, **asker.scope)
        subjects = people or ([asker.name] if asker.name else [])
        decision = await self._pet.remember(content, subjects=subjects, author=asker.name, **asker.scope)
        if not (new := new_memories([decision])):
            return Answer(f"Nothing new to remember: {decision.reason}.")
        here = "between us" if asker.place.private else "for everybody in this channel to ask me about"
        return Answer(f"Remembered, {here}:", tuple(receipt_item(one, asker.place) for one in new))

    async def _forget(self, asker: Asker, what: str) -> Answer:
        """Ask whether to forget a memory by its id. For any other text, list the matching memories to choose
        from."""
        if len(what) >= 8 and " " not in what:
            with suppress(NotFound):
                return await self._ask_to_forget(asker, what)
        found = await self._memories(asker, what)
        return Answer("Which one shall I forget?", found.items, found.note) if found.items else found

    async def _ask_to_forget(self, asker: Asker, value: str) -> Answer:
        """Show what would be deleted, with a button to confirm. The value is an id and, if it is no memory, a
        full stop and its kind. Raises NotFound for what the asker did not state."""
        id, _, kind = value.partition(".")
        if not kind:
            memory = await self._pet.memories.get(id, **asker.scope)
            mine = {user_key(one) for one in (asker.user, *await self._accounts(asker))}
            if mine.isdisjoint(tellers(memory.owners, memory.user_id)):
                raise NotFound(NOT_THEIRS)
        of = cast("ForgetKind", kind or "memory")
        return forget_preview(await self._pet.memories.preview_forget(id, kind=of, **asker.scope))

    async def _forget_confirmed(self, kind: ForgetKind, asker: Asker, value: str) -> Answer:
        """Forget a candidate whose preview the asker has seen, and the message that asked to forget it."""
        id, asked_in = value.split(".")
        candidate = ForgetCandidate(id, kind, "", self._pet.clock(), asked_in)
        receipts = await self._pet.memories.forget_confirmed([candidate], **asker.scope)
        if not receipts:
            return Answer(NOT_YOURS_TO_FORGET, outcome="forgotten")
        return await self._forgotten(asker, receipts[0])

    async def _forgotten(self, asker: Asker, receipt: Forgotten) -> Answer:
        others_state_it = False
        with suppress(NotFound):
            if receipt.memory:
                await self._pet.memories.get(receipt.id, **asker.scope)
                others_state_it = True
        return forgotten_answer(receipt, others_state_it=others_state_it)

    async def _restore(self, asker: Asker, id: str) -> Answer:
        try:
            back = await self._pet.memories.undo_forget(id, user=asker.user)
        except NotFound:
            return Answer(UNDO_OVER, replaces=True)
        return Answer(f"I remember it again: {shorten(back.content)}", replaces=True)

    async def _forget_me(self, asker: Asker, _: str) -> Answer:
        others = await self._pet.people.accounts(user=asker.user)
        all_of_them = [Button("Forget all my accounts", "erase-all", style="danger")] if others else []
        return Answer(
            "This deletes everything I store about you, everywhere: memories, messages, summaries, tasks and "
            "your profile. It cannot be undone.",
            (Item(await self._named(others), label="Your linked accounts stay, unless you choose all"),)
            * bool(others),
            buttons=(Button("Forget me", "erase", style="danger"), *all_of_them, Button("Keep it", "keep")),
        )

    async def _privacy(self, asker: Asker, _: str) -> Answer:
        people = self._pet.people
        linked = [*(await self._accounts(asker)).values()]
        return privacy_answer(self._pet.settings, asker, await people.unkept(user=asker.user), linked)

    async def _link(self, asker: Asker, code: str) -> Answer:
        """Show a new code or, if one is passed, ask before linking with its account: somebody may have been
        talked into typing a stranger's code, and would let them read everything."""
        if not code:
            code = await self._pet.people.link_code(user=asker.user)
            return Answer(f"{code} links another account of yours with this one: {LINKING.format(code=code)}")
        other = await self._pet.people.code_is_of(code, user=asker.user)
        return Answer(
            f"This is the code of {await self._named([other])}. Link it only if that account is "
            "yours too: in private it then reads, forgets and exports all that I remember of you here, and "
            "you all that I remember there. If somebody gave you this code, do not.",
            buttons=(
                Button("It is mine: link them", "link", code[:MAX_CODE], "danger"),
                Button("No", "keep"),
            ),
        )

    async def _link_confirmed(self, asker: Asker, code: str) -> Answer:
        if not asker.place.private:
            return Answer(IN_PRIVATE)
        linked = await self._pet.people.link(code, user=asker.user)
        return Answer(
            f"Linked: {await self._named(linked)}. {asker.prefix}unlink separates them.", replaces=True
        )

    async def _unlink(self, asker: Asker, _: str) -> Answer:
        others = await self._pet.people.unlink(user=asker.user)
        return Answer(
            f"No longer linked with {await self._named(others)}." if others else "This account is not linked."
        )

    async def _keep(self, wanted: bool, anywhere: bool, asker: Asker, _: str) -> Answer:
        """Opt the asker out of storage here or everywhere, or in again, and show the result."""
        place = PRIVATE if anywhere else asker.place
        await self._pet.people.keep(wanted, user=asker.user, place=place)
        answer = await self._privacy(asker, "")
        return answer if wanted else replace(answer, note=(STORED_BEFORE.format(prefix=asker.prefix),))

    async def _tasks(self, asker: Asker, _: str) -> Answer:
        tasks = await self._pet.tasks.list(**asker.scope)
        if not tasks:
            return Answer("No task is open here.")
        return Answer("Your open tasks:", tuple(map(task_item, tasks[:MOST_LISTED])))

    async def _checkins(self, asker: Asker, text: str) -> Answer:
        """List the planned check-ins, or turn check-ins on or off."""
        choice = text.lower()
        if choice not in ("", "on", "off"):
            return Answer(f"Use {asker.prefix}checkins on or off; without either I show what is planned.")
        user, pet = asker.user, self._pet
        if choice:
            await pet.check_ins.want(choice == "on", user=user)
        planned = await pet.check_ins.list(user=user)
        said = [(await pet.conversations.message(one.messages[-1], user=user)).text for one in planned]
        zone = str(await pet.people.zone(user=user) or "UTC, until you tell me your time zone")
        wanted = await pet.check_ins.wanted(user=user)
        return check_ins_answer(wanted, [*zip(planned, said, strict=True)], asker, pet.settings, zone)

    async def _answer_call(self, agreed: bool, asker: Asker, id: str) -> Answer:
        """Confirm or decline a call that changes something."""
        call = await self._pet.calls.answer(id, user=asker.user, agreed=agreed)
        if call is None:
            return Answer("That is answered already, has timed out, or is for somebody else to answer.")
        if agreed:
            return Answer(f"I am doing it: {call_title(call)}. I will tell you the result.", outcome="yes")
        return Answer(f"I did not do it: {call_title(call)}.", outcome="no")

    async def _not_now(self, asker: Asker, _: str) -> Answer:
        return Answer("All right, I will not ask about that.", outcome="not now")

    async def _no_check_ins(self, asker: Asker, _: str) -> Answer:
        await self._pet.check_ins.want(False, user=asker.user)
        return Answer(f"Check-ins are off. {asker.prefix}checkins on turns them on again.", outcome="stopped")

    async def _context(self, asker: Asker, _: str) -> Answer:
        items = context_items(await self._pet.people.context(**asker.scope))
        return Answer("What I know of you here:" if items else "I know nothing of you here yet.", items)

    async def _trace(self, asker: Asker, _: str) -> Answer:
        place = "" if asker.place.private else asker.place.key
        traces, now = self._pet.traces, self._pet.clock()
        found = await traces.list(TraceFilter(user=asker.user, place=place), now, limit=10)
        last = next((trace for trace in found if trace.place == place and trace.said), None)
        if last is None:
            return Answer("I have no trace of a message of yours here.")
        if await traces.shows_others(last, [*await self._accounts(asker)]):
            return Answer("That trace holds messages of others from elsewhere. Whoever runs me can show it.")
        return trace_answer(await traces.get(last.id, now), last.short)

    async def _erase(self, linked: bool, asker: Asker, _: str) -> Answer:
        return erasure_answer(await self._pet.people.erase(user=asker.user, linked=linked))

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
        known = {task.id for task in await self._pet.tasks.list(**asker.scope)}
        if id not in known:
            return Answer(NOT_OPEN)
        task = (await self._pet.tasks.update(id=id, due=due, **asker.scope)).task
        when = ("again ", task.due) if task.due else ()
        return Answer(f"I remind you again: {shorten(task.description)}", note=when, outcome="snoozed")
