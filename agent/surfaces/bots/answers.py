"""The answers of commands, as data. Each platform turns them into text and buttons."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Literal

from agent.models.providers import base_url_of
from agent.settings import Settings
from agent.tracing.render.overview import overview, warnings
from agent.tracing.render.tree import Node
from agent.tracing.trace import Trace
from memory.audience import PRIVATE, Place, user_key
from memory.erasure.person.receipt import Erased
from memory.people.profile import UserContext
from memory.records import Decision, Memory, Task
from memory.sql.memories import tellers

MAX_LINE = 300
"""Characters of a memory or task in a list."""
MAX_FACTS = 7
MAX_TRACE_LINES = 12
MAX_TRACE_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who uses a command or a button, and the place they use it in."""

    user: str
    place: Place = PRIVATE
    prefix: str = "/"
    """What the names of commands begin with for them."""
    name: str | None = None
    """Their name, as others see it; None where the platform does not tell."""


@dataclass(frozen=True, slots=True)
class Button:
    """Pressing it calls `Commands.press(asker, action, value)`. For the action `edit` the platform asks for
    the new text and calls `Commands.edit`."""

    label: str
    action: str
    value: str = ""
    """At most 60 characters."""
    style: Literal["plain", "danger"] = "plain"


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list. People write its text, so a platform escapes the markup."""

    text: str
    note: str = ""
    buttons: tuple[Button, ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class ReceiptUpdate:
    """A receipt that no longer holds: the platform replaces its `text` with the `outcome`."""

    text: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command. Only the person who asked sees it."""

    text: str
    items: tuple[Item, ...] = ()
    note: str = ""
    """Shown after the items."""
    buttons: tuple[Button, ...] = ()
    update: ReceiptUpdate | None = None


def new_memories(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the last decision on each memory that was added or replaced another. Each gets a receipt."""
    return list({d.id: d for d in decisions if d.id and d.action in ("add", "replace")}.values())


def shorten(text: str) -> str:
    """Return the text on one line of at most `MAX_LINE` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 2]} …"


def expiry(expires_at: datetime | None, now: datetime, zone: tzinfo | None) -> str:
    """Return ``until Friday``, in the zone's time; empty if nothing expires."""
    if expires_at is None:
        return ""
    then, today = expires_at.astimezone(zone), now.astimezone(zone)
    days = (then.date() - today.date()).days
    if days <= 0:
        return f"until {then:%H:%M}"
    if days == 1:
        return f"until tomorrow, {then:%H:%M}"
    if days < 7:
        return f"until {then:%A}"
    date = f"{then.day} {then:%B}"
    return f"until {date}" if then.year == today.year else f"until {date} {then.year}"


def memory_item(memory: Memory, asker: Asker, now: datetime, zone: tzinfo) -> Item:
    """Return a memory, with a button to forget it if the asker is one of those who said it, and if they alone
    did, to edit it and to make private what they said in this place."""
    own = user_key(asker.user) in tellers(memory.owners, memory.user_id)
    alone = own and memory.user_id == asker.user
    told_here = alone and not asker.place.private and str(asker.place) == memory.place
    buttons = tuple(
        Button(label, action, memory.id)
        for label, action, offered in (
            ("Forget", "delete", own),
            ("Edit", "edit", alone),
            ("Make private", "private", told_here),
        )
        if offered
    )
    created = f"{memory.created_at.astimezone(zone):%Y-%m-%d}"
    return Item(shorten(memory.content), f"{created} {expiry(memory.expires_at, now, zone)}".strip(), buttons)


def receipt_item(decision: Decision, place: Place, now: datetime, zone: tzinfo | None) -> Item:
    """Return a memory that is new, with buttons to forget it or, if it replaced another, to undo that; to
    edit it and, in a channel, to make it private."""
    id = decision.id or ""
    back = Button("Undo", "undo", id) if decision.action == "replace" else Button("Forget", "delete", id)
    buttons = [back, Button("Edit", "edit", id)]
    if not place.private:
        buttons.append(Button("Make private", "private", id))
    return Item(shorten(decision.content), expiry(decision.expires_at, now, zone), tuple(buttons))


def task_item(task: Task, zone: tzinfo) -> Item:
    due = f"due {task.due.astimezone(zone):%Y-%m-%d %H:%M}" if task.due else ""
    state = "in progress" if task.status == "in_progress" else ""
    note = ", ".join(filter(None, (state, due)))
    return Item(shorten(task.description), note, (Button("Done", "done", task.id),))


def context_items(known: UserContext) -> tuple[Item, ...]:
    """Return one line for each known field of a person."""
    fields = [
        (name.replace("_", " "), value) for part in (known.profile, known.preferences) for name, value in part
    ]
    fields += [
        ("themes", known.conversation_themes),
        ("in short", known.memory_summary),
        ("open tasks", tuple(task.description for task in known.open_tasks[:MAX_FACTS])),
        *(("fact", fact.content) for fact in known.long_term_facts[:MAX_FACTS]),
    ]
    return tuple(Item(text, label=label) for label, value in fields if (text := _text(value)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "; ".join(value) if isinstance(value, tuple) else str(value or "")


def privacy_answer(settings: Settings, prefix: str) -> Answer:
    """Return which data is stored, who may read it, and where it is sent. `prefix` begins each command."""
    where = "Nothing of it leaves the machine I run on."
    if not settings.offline:
        at = "" if base_url_of(settings) else " at OpenAI"
        where = f"To answer, I send what I need of it to the model {settings.chosen_model}{at}."
    kept = (
        "What you write to me and what I answer; facts I take from it, each with how long it holds; a "
        "summary of each conversation; your tasks. What is not written to me I do not keep."
    )
    readers = (
        "What you tell me in private comes up only in private with you. What you tell me in a channel comes "
        "up in that channel, and in private with you."
    )
    can = (
        f"{prefix}memories shows what I remember and takes it away, {prefix}context and {prefix}tasks show "
        f"the rest, and {prefix}forget-me takes away everything, everywhere."
    )
    labelled = {
        "What I keep": kept,
        "Who may read it": readers,
        "Where it goes": where,
        "What you can do": can,
    }
    return Answer("Your privacy:", tuple(Item(text, label=label) for label, text in labelled.items()))


def erasure_answer(erased: Erased) -> Answer:
    """Return what was removed, and what is left with the reason."""
    removed = tuple(Item(str(count), label=kind) for kind, count in erased.removed.items())
    left = tuple(
        Item(f"{part.count}, {part.why}", label=f"{'stays' if part.expected else 'left'}: {part.kind}")
        for part in erased.left
    )
    left += tuple(Item(where, label="not in my reach") for where in erased.out_of_reach)
    if not erased.verified:
        return Answer("Not everything is gone yet; ask again, or tell whoever runs me.", removed + left)
    text = "Everything I kept of you is gone." if removed else "I kept nothing of you."
    return Answer(text, removed + left)


def trace_answer(trace: Trace, short_id: str) -> Answer:
    """Return the upper levels of the trace's tree, and its warnings."""
    lines = [*_lines(overview(trace, hits=0)), *warnings(trace)]
    more = f"{len(lines) - MAX_TRACE_LINES} more lines; " if len(lines) > MAX_TRACE_LINES else ""
    items = tuple(Item(line) for line in lines[:MAX_TRACE_LINES])
    return Answer("This is what I did:", items, note=f"{more}trace {short_id}")


def _lines(node: Node, depth: int = 0) -> Iterator[str]:
    if depth < MAX_TRACE_DEPTH:
        yield f"{'· ' * depth}{node.text}"
        for inner in node.nodes:
            yield from _lines(inner, depth + 1)
