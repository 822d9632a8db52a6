"""Build what people read besides replies, as data: receipts, questions, reminders, errors. Each platform
renders them as text and buttons: text without markup, times in the reader's time zone."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import uuid4

from agent.background.check_ins import CheckInMessage
from agent.background.reminders import quoted_task
from agent.companion import Companion
from agent.errors import BadInput, ModelRejected, ModelUnavailable
from agent.models.choice.providers import base_url_of
from agent.models.choice.registry import fallback_settings
from agent.settings import Settings
from agent.surfaces.links import MEMORIES, link_to
from agent.types.labels import call_in_words
from agent.types.records_json import describe_cascade
from memory.audience import PRIVATE, Place
from memory.errors import MemoryFault, NotFound
from memory.people.links import NotLinked
from memory.records import Decision, ForgetCandidate, Task
from tools.proposed_call import ProposedCall

log = logging.getLogger("hachi.bots")

MAX_LINE = 300
"""Characters of a memory or task in a list."""
MOST_QUOTED, MAX_QUOTE = 8, 60
"""Messages that are quoted before they are forgotten, and characters of each."""
ID_PREFIX = 22
"""Characters of the id of the message that asked, in a button's value: enough to find it, and both fit."""
QUESTION = "Shall I forget this?"
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


Handler = Callable[[Asker, str], Awaitable[Answer]]
"""Answers a command, whose argument is the text, or a button, whose value it is."""


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
    return Answer(quoted_task(task), note=("due ", task.due) if task.due else (), buttons=buttons)


def check_in_answer(check_in: CheckInMessage) -> Answer:
    """Return a question how something went, with buttons to leave it and to be asked no more."""
    id = check_in.check_in.id
    return Answer(
        check_in.text, buttons=(Button("Not now", "not-now", id), Button("Stop these", "no-check-ins", id))
    )


def call_question(call: ProposedCall, id: str) -> Answer:
    """Ask whether to run a call, with all of its arguments. Only its person may answer, for some minutes."""
    buttons = Button("Yes", "run-call", id), Button("No", "drop-call", id)
    return Answer(f"Shall I do this?\n{call_in_words(call)}", buttons=buttons)


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


def models_named(settings: Settings) -> str:
    """Return the models that may be asked, and where they are."""
    models = [settings, second] if (second := fallback_settings(settings)) else [settings]
    names = [
        f"{one.chosen_model}{'' if base_url_of(one) or one.model_file else ' at OpenAI'}" for one in models
    ]
    return f"the model {' or, while it does not answer, '.join(names)}"


_MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (ModelUnavailable, "I can't think right now: the model does not answer. Please try again in a minute."),
    (ModelRejected, "I can't think right now: the model refused. Whoever runs me has to look into it."),
    (MemoryFault, "I can't reach my memory right now. Please try again in a minute."),
)
UNEXPECTED = "Something broke on my side. Please try again."


def describe_error(error: Exception) -> str:
    """Log the error and return a short message for the person: what to do, and the id of the log's entry. The
    message has no details, which name machines and files, since others may read along. Errors about the
    person's own input are returned unchanged and not logged."""
    if isinstance(error, BadInput | NotFound | NotLinked):
        return str(error)
    trace_id = getattr(error, "trace_id", None) or f"trace_{uuid4().hex}"
    text = next((text for kind, text in _MESSAGES if isinstance(error, kind)), None)
    log.error("%s: %s: %s", trace_id, type(error).__name__, error, exc_info=error if text is None else None)
    return f"{text or UNEXPECTED} ({trace_id})"
