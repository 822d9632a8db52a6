"""Build the answers of commands, and the receipts below replies, as data. Each platform renders them as text
and buttons: text without markup, times in the reader's time zone."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from agent.background.check_ins import CheckInMessage
from agent.background.reminders import words_of
from agent.companion import Companion
from agent.models.choice.providers import base_url_of
from agent.models.choice.registry import asked_elsewhere, fallback_settings
from agent.settings import Settings
from agent.surfaces.bots.attachments.transcriber import Transcriber
from agent.surfaces.links import MEMORIES, link_to
from agent.tracing.render.trace import tree, warnings
from agent.tracing.render.tree import Node
from agent.tracing.trace import Trace
from agent.types.labels import call_in_words
from agent.types.records_json import describe_cascade, describe_forgotten
from memory.audience import PRIVATE, Place, user_key
from memory.people.check_ins import CheckIn
from memory.people.profile import UserContext
from memory.records import Decision, Erased, ForgetCandidate, Forgotten, Memory, Task
from memory.sql.memories.store import tellers
from tools.proposed_call import ProposedCall

MAX_LINE = 300
"""Characters of a memory or task in a list."""
MOST_QUOTED, MAX_QUOTE = 8, 60
"""Messages that are quoted before they are forgotten, and characters of each."""
MAX_FACTS = 7
MAX_TRACE_LINES = 12
MAX_TRACE_DEPTH = 3
ID_PREFIX = 22
"""Characters of the id of the message that asked, in a button's value: enough to find it, and both fit."""
QUESTION = "Shall I forget this?"
STANDS = "My replies in the chat are deleted too. Delete your own messages there yourself."
STORES = (
    "Your messages to me and my answers; the facts I take from them, each with how long it is valid; a "
    "summary of each conversation; your tasks. I store no messages that are not written to me."
)
READERS = (
    "What you tell me in private comes up only in private with you. What you tell me in a channel comes up "
    "in that channel, and in private with you."
)
STAYS = "Nothing leaves the machine I run on."
READ_PLACES = " In private I also look into the channels where you wrote, as long as you can read them."
STORE_NOTHING, STORE_AGAIN = "Store nothing of mine", "Store my messages again"
STORES_NOTHING = "Nothing about you, anywhere, as you asked. I answer, and store neither message."
STORES_NOTHING_HERE = "Nothing about you here, as you asked. I answer, and store neither message."
NOTHING = "Nothing you told me matches this, so nothing is forgotten."

TASK = "Task"
"""The label of a task below a reply; what was remembered has none there."""


class Link(str):
    """An address, shown as a link."""

    __slots__ = ()


Words = tuple[str | Link | datetime, ...]
"""Pieces of a text, to be joined without blanks; a platform shows the times by the reader's clock."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who uses a command or a button, and the place they use it in."""

    user: str
    place: Place = PRIVATE
    prefix: str = "/"
    """What the names of commands begin with for them."""
    name: str | None = None
    """Their name, as others see it; None where the platform does not tell."""

    @property
    def scope(self) -> dict[str, Any]:
        return {"user": self.user, "place": self.place}


@dataclass(frozen=True, slots=True)
class Button:
    """Pressing it calls `Commands.press(asker, action, value)`."""

    label: str
    action: str
    value: str = ""
    """At most 60 characters: the id of what it is about, and after a full stop what else is needed."""
    style: Literal["normal", "danger"] = "normal"


@dataclass(frozen=True, slots=True)
class Item:
    text: str
    note: Words = ()
    buttons: tuple[Button, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    items: tuple[Item, ...] = ()
    note: Words = ()
    """Shown after the items."""
    buttons: tuple[Button, ...] = ()
    outcome: str = ""
    """What became of the item whose button was pressed: it replaces the item."""
    replaces: bool = False
    """Whether it takes the place of the answer whose button was pressed."""
    public: bool = False
    """Whether everybody in the place sees it."""


async def console_link(pet: Companion, user: str, place: Place, page: str = MEMORIES) -> Words:
    """Return a link to one of the person's pages: in private, where people can reach the console."""
    base = pet.settings.console_url
    if base is None or not place.private:
        return ()
    return ("On your page, for ten minutes: ", Link(await link_to(pet, user, base, page)))


def new_memories(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the last decision on each memory that was added or replaced another. Each gets a receipt."""
    return list({d.id: d for d in decisions if d.id and d.action in ("add", "replace")}.values())


def shorten(text: str, most: int = MAX_LINE) -> str:
    """Return the text on one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 2]} …"


def memory_item(memory: Memory, asker: Asker, teller: str, accounts: Collection[str] = ()) -> Item:
    """Return a memory and, if it came from somebody else, their name. It has a button to forget it if the
    asker stated it, on this account or one of their other `accounts`, and one to make it private if they
    stated it in this place and nobody else did."""
    mine = {user_key(account) for account in (asker.user, *accounts)}
    told = not mine.isdisjoint(tellers(memory.owners, memory.user_id))
    told_here = (
        told and memory.user_id == asker.user and not asker.place.private and str(asker.place) == memory.place
    )
    buttons = tuple(
        Button(label, action, memory.id)
        for label, action, offered in (
            ("Forget", "delete", told),
            ("Make private", "private", told_here),
        )
        if offered
    )
    until: Words = (", until ", memory.expires_at) if memory.expires_at else ()
    by: Words = (f"{teller}, ",) if teller else ()
    return Item(shorten(memory.content), (*by, memory.created_at, *until), buttons)


def receipt_item(decision: Decision, place: Place) -> Item:
    """Return a memory that is new, with buttons to forget it or, if it replaced another, to undo that; and in
    a channel to make it private."""
    id = decision.id or ""
    back = Button("Undo", "undo", id) if decision.action == "replace" else Button("Forget", "delete", id)
    buttons = [back]
    if not place.private:
        buttons.append(Button("Make private", "private", id))
    until: Words = ("until ", decision.expires_at) if decision.expires_at else ()
    return Item(shorten(decision.content), until, tuple(buttons))


def task_item(task: Task) -> Item:
    state: Words = ("in progress ",) if task.status == "in_progress" else ()
    due: Words = ("due ", task.due) if task.due else ()
    return Item(shorten(task.description), (*state, *due), (Button("Done", "done", task.id),))


def reminder_answer(task: Task) -> Answer:
    """Return a reminder of the task, with buttons to finish it and to be reminded again."""
    later = {"10 minutes": "in 10 minutes", "An hour": "in an hour", "Tomorrow": "tomorrow"}
    snooze = (Button(label, "snooze", f"{task.id}.{due}") for label, due in later.items())
    buttons = (Button("Done", "done", task.id), *snooze)
    return Answer(words_of(task), note=("due ", task.due) if task.due else (), buttons=buttons)


def check_in_answer(asked: CheckInMessage) -> Answer:
    """Return a question how something went, with buttons to leave it and to be asked no more."""
    id = asked.check_in.id
    return Answer(
        asked.text, buttons=(Button("Not now", "not-now", id), Button("Stop these", "no-check-ins", id))
    )


def call_question(call: ProposedCall, id: str) -> Answer:
    """Ask whether to run a call, with all of its arguments. Only its person may answer, for some minutes."""
    buttons = Button("Yes", "run-call", id), Button("No", "drop-call", id)
    return Answer(f"Shall I do this?\n{call_in_words(call)}", buttons=buttons)


def check_ins_answer(
    wanted: bool, planned: Sequence[tuple[CheckIn, str]], asker: Asker, settings: Settings, zone: str
) -> Answer:
    """Say whether the person is asked how things went, and list what is planned, each with what told of
    it."""
    name = f"{asker.prefix}checkins"
    if not wanted:
        return Answer(
            f"Check-ins are off. After {name} on I ask you here how things went, once a day at most."
        )
    items = tuple(
        Item(shorten(one.about), (one.due, f", since you wrote “{shorten(said, MAX_QUOTE)}”"))
        for one, said in planned[:MAX_FACTS]
    )
    return Answer(
        "Check-ins are on. I ask how things went that you tell me here: only here, once a day at most, "
        f"between {' and '.join(map(str, settings.waking_hours))} o'clock in {zone}. "
        f"{'This is planned:' if items else 'Nothing is planned yet.'}",
        items,
        note=(f"{name} off turns them off. After two without an answer I wait until you write.",),
    )


def context_items(context: UserContext) -> tuple[Item, ...]:
    """Return one line for each known field of a person."""
    fields = [
        (name.replace("_", " "), value)
        for part in (context.profile, context.preferences)
        for name, value in part
    ]
    fields += [
        ("themes", context.conversation_themes),
        ("in short", context.memory_summary),
        ("open tasks", tuple(task.description for task in context.open_tasks[:MAX_FACTS])),
        *(("fact", fact.content) for fact in context.long_term_facts[:MAX_FACTS]),
    ]
    return tuple(Item(text, label=label) for label, value in fields if (text := _text(value)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else str(value or "")


def forget_question(candidates: Sequence[ForgetCandidate]) -> Answer:
    """Ask which of `Reply.forget` to forget, with a button for each and what goes with it. The buttons hold
    all ids that they need, so they work after a restart."""
    items = tuple(
        Item(shorten(one.content), _goes_with(one, MOST_QUOTED // len(candidates)), (_forget_button(one),))
        for one in candidates
    )
    return Answer(QUESTION if items else NOTHING, items)


def forget_preview(candidate: ForgetCandidate) -> Answer:
    """Show what would be forgotten, and ask for it."""
    item = Item(shorten(candidate.content), _goes_with(candidate, MOST_QUOTED))
    return Answer(QUESTION, (item,), buttons=(_forget_button(candidate), Button("Keep it", "keep")))


def _goes_with(candidate: ForgetCandidate, most: int) -> Words:
    """Return when it was stated and what its forgetting deletes: counts, and `most` messages in short."""
    goes = describe_cascade(candidate)
    texts = [text for text in candidate.messages if text != candidate.content]
    quoted = ", ".join(f"“{shorten(text, MAX_QUOTE)}”" for text in texts[: max(1, most)])
    return (candidate.created_at, f"; {': '.join(filter(None, (goes, quoted)))}" if goes else "")


def _forget_button(candidate: ForgetCandidate) -> Button:
    return Button("Forget", candidate.kind, f"{candidate.id}.{candidate.asked_in[:ID_PREFIX]}")


def forgotten_answer(receipt: Forgotten, *, others_state_it: bool) -> Answer:
    """Say what was forgotten and until when it can be undone, and offer to forget related memories."""
    text = "Forgotten for you; somebody else told me the same here" if others_state_it else "Forgotten"
    content, kept = shorten(receipt.content), len(receipt.kept)
    left = f"Of my replies that stay, {kept} may repeat it in other words. " if kept else ""
    undo: Words = (
        ("It can be undone until ", receipt.undo_until, ". ")
        if receipt.undo_id and receipt.undo_until
        else ()
    )
    return Answer(
        f"{text}: {content}" + ("\nI also remember this. Forget it as well?" if receipt.offered else ""),
        tuple(
            Item(shorten(one.content), buttons=(Button("Forget", "delete", f"{one.id}.{one.kind}"),))
            for one in receipt.offered
        ),
        note=(f"Deleted: {describe_forgotten(replace(receipt, kept=()))}. ", *undo, f"{left}{STANDS}"),
        buttons=(Button("Undo", "restore", receipt.undo_id),) if receipt.undo_id else (),
        outcome="forgotten",
    )


def models_named(settings: Settings) -> str:
    """Return the models that may be asked, and where they are."""
    asked = [settings, second] if (second := fallback_settings(settings)) else [settings]
    names = [
        f"{one.chosen_model}{'' if base_url_of(one) or one.model_file else ' at OpenAI'}" for one in asked
    ]
    return f"the model {' or, while it does not answer, '.join(names)}"


def _heard_by(settings: Settings) -> str:
    """Return where voice messages go, in a sentence; empty if nothing hears them."""
    hears = Transcriber.of(settings)
    where = hears and urlsplit(hears.base_url).hostname
    return f" Voice messages and recordings are transcribed by {hears.model} at {where}." if hears else ""


def privacy_answer(
    settings: Settings, asker: Asker, unkept: Sequence[Place], linked: Sequence[str] = ()
) -> Answer:
    """Return which data is stored, who may read it, and where it is sent, with buttons to opt out of storage.
    `unkept` is where the asker has opted out, `linked` are their other accounts."""
    prefix, private = asker.prefix, asker.place.private
    here = not {PRIVATE, *asker.place.containing()}.isdisjoint(unkept)
    sent = f"To answer, I send what I need of it to {models_named(settings)}."
    labelled = {
        "What I store": (STORES_NOTHING if PRIVATE in unkept else STORES_NOTHING_HERE) if here else STORES,
        "Who may read it": READERS + READ_PLACES * settings.read_places,
        "Where it goes": f"{sent if asked_elsewhere(settings) else STAYS}{_heard_by(settings)}",
        "What you can do": f"{prefix}memories shows and deletes what I remember, {prefix}context and "
        f"{prefix}tasks show the rest, and {prefix}forget-me deletes everything, everywhere.",
    }
    if linked:
        labelled["Linked accounts"] = f"{', '.join(linked)}; {prefix}unlink separates them."
    if unkept and not here:
        labelled["Elsewhere"] = f"Channels where I store nothing of yours, as you asked: {len(unkept)}."
    choices = [] if here else [Button(STORE_NOTHING, "keep-nothing", style="danger")]
    if not here and not private:
        choices.insert(0, Button(f"{STORE_NOTHING} here", "nothing-here"))
    if unkept:
        choices.append(Button(STORE_AGAIN, "keep-again"))
    items = tuple(Item(text, label=label) for label, text in labelled.items())
    return Answer("Your privacy:", items, buttons=tuple(choices), replaces=True)


def erasure_answer(erased: Erased) -> Answer:
    """Return what was removed, and what is left with the reason."""
    removed = tuple(Item(str(count), label=kind) for kind, count in erased.removed.items())
    left = tuple(
        Item(f"{part.count}, {part.why}", label=f"{'stays' if part.expected else 'not deleted'}: {part.kind}")
        for part in erased.left
    )
    left += tuple(Item(where, label="out of my reach") for where in erased.out_of_reach)
    if not erased.verified:
        text = "Not everything is deleted yet: use the command again, or tell whoever runs me."
    else:
        text = "Everything I stored about you is deleted." if removed else "I had stored nothing about you."
    return Answer(text, removed + left, replaces=True)


def trace_answer(trace: Trace, short_id: str) -> Answer:
    """Return the upper levels of the trace's tree, and its warnings."""
    said = f"You: {shorten(trace.summary.said or '')}"
    lines = [*_lines(replace(tree(trace), text=said)), *warnings(trace)]
    more = f"{len(lines) - MAX_TRACE_LINES} more lines; " if len(lines) > MAX_TRACE_LINES else ""
    items = tuple(Item(line) for line in lines[:MAX_TRACE_LINES])
    return Answer("This is what I did:", items, note=(f"{more}trace {short_id}",))


def _lines(node: Node, depth: int = 0) -> Iterator[str]:
    if depth < MAX_TRACE_DEPTH:
        yield f"{'· ' * depth}{node.text}"
        for inner in node.shown(0):
            yield from _lines(inner, depth + 1)
