"""Cut the history and the other sections of a prompt to their budgets, and write its messages. What is the
same in every turn of a conversation comes first, so that servers can reuse their prompt cache.

1. System message: the persona, the rules and the calling program's instructions.
2. The history: the last messages, each in its role. It is cut in blocks: its start stays for several turns.
3. The question's message. Before the question, if they have content: the speaker's profile, facts and tasks,
   the summary of the conversation, passages from documents, the message that it replies to, the place and
   the time, and the form of the answer. Then the question, behind its speaker's name.

`build_messages_for_model` is pure: the same context gives the same bytes. Each section stays within its
budget and is cut between items. In the question's message all text of people and documents is quoted (``>
``), and the question's own lines are labelled or indented, so none of them can begin a section. The
transcript stores only the question.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from agent.settings import Settings
from agent.turn.client.our_calls import with_state
from agent.turn.context.budget import Purse, lines_that_fit, newest_blocks
from agent.turn.context.user_snippet import (
    MAX_FACTS,
    clock,
    fitting,
    line,
    moment,
    snippet_lines,
)
from agent.types.budget import SUMMARY_BUDGET, Budget
from agent.types.client import PICTURE_URL, CallItem, ClientTurn, Item, MessageItem, ResultItem
from agent.types.labels import place_label
from memory.audience import Place
from memory.documents.quote import LABEL
from memory.people.profile import UserContext
from memory.process.spans import note
from memory.records import Message
from memory.text import storable
from memory.text.quoting import indented, quoted, speaker, spoken
from prompts import read, render

MORE_TASKS = "More tasks are open than these; `get_recent_memories` lists them all."
SENT = "sent to them when a task falls due, where they asked for it"
NOT_SENT = "not sent to them; a task is only shown when they write here"
PAUSE = timedelta(hours=6)
"""A person's message after a longer pause is shown with its date. Replies are shown without one, or the model
would begin its own with a date."""
MOST_HERE = 6
"""How many people besides the speaker are named as lately active in a shared place."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits on the sections of a prompt and on model calls. The question is never cut."""

    context: Budget = Budget(1_000)
    summary: Budget = SUMMARY_BUDGET
    history: Budget = Budget(24_000)
    knowledge: Budget = Budget(4_000)
    instructions: int = 8_000
    """Characters of the calling program's instructions."""
    facts: int = MAX_FACTS
    """The most facts about the person."""
    model_calls: int = 5
    """Model calls in a turn; the prompt says the number."""


def budgets_of(settings: Settings) -> Budgets:
    return Budgets(
        settings.context_budget,
        SUMMARY_BUDGET,
        settings.history_budget,
        settings.knowledge_budget,
        model_calls=settings.max_turns,
    )


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The content of a prompt."""

    now: datetime
    speaker: str
    place: Place
    history: Sequence[Message | Item]
    """The last messages of the conversation, oldest first, without the question."""
    text: str
    """The question."""
    known: UserContext = field(default_factory=UserContext)
    """The speaker's profile, and the facts and tasks relevant to the question, most relevant first."""
    summary: str = ""
    """The summary of the conversation so far."""
    knowledge: str = ""
    """Passages from documents as a quoted block; empty if the model searches documents itself."""
    persona: str = ""
    """The operator's persona; empty selects the default persona."""
    budgets: Budgets = field(default_factory=Budgets)
    instructions: str = ""
    """The calling program's instructions."""
    more_tasks: bool = False
    """Whether `known` leaves out open tasks."""
    reminders: bool = False
    """Whether the person is reminded of due tasks without asking."""
    client: ClientTurn = field(default_factory=ClientTurn)
    """What a client of a chat API sends besides the question."""
    narrow: bool = False
    """Whether the model's window is too small for more than the short rules."""
    occasion: str = ""
    """The instruction in place of a question, in a turn that no message started."""


def build_messages_for_model(context: PromptContext) -> list[dict[str, Any]]:
    """Return `{"role", "content"}` messages: the system message, the history, the question. Between and after
    them are calls of a client's tools and their results, in the form of the Responses API."""
    return messages_of(within_budgets(context))


def messages_of(context: PromptContext) -> list[dict[str, Any]]:
    """Return the messages of a context that is already within its budgets."""
    system = {
        "persona": context.persona.strip() or read("persona"),
        "rules": read("assistant_short")
        if context.narrow
        else render("assistant", calls=str(context.budgets.model_calls)),
        "wishes of the program": _client_wishes(context),
    }
    question = {
        "person": _person(context),
        "summary": context.summary and render("summary", summary=quoted(context.summary)),
        "documents": context.knowledge and render("knowledge", documents=context.knowledge),
        "replies to": context.client.replies_to
        and render("replies_to", message=quoted(storable(context.client.replies_to))),
        "setting": _setting(context),
        "form": _form(context),
        "question": context.occasion
        or render("question", message=spoken(context.speaker, context.client.shown or context.text)),
    }
    history = [
        _shown(item, context, dated) for item, dated in zip(context.history, _dated(context), strict=True)
    ]
    sections = {
        name: [(part, len(text)) for part, text in parts.items() if text]
        for name, parts in (("sections", system), ("question_sections", question))
    }
    note(**sections, question_at=len(history))
    asked = {"role": "user", "content": _joined(question)}
    return [
        {"role": "system", "content": _joined(system)},
        *history,
        _with_images(asked, (*context.client.images, *context.client.quoted_images)),
        *(part for item in context.client.after for part in _with_state(item, context)),
    ]


def _joined(sections: Mapping[str, str]) -> str:
    return "\n\n".join(filter(None, sections.values()))


def within_budgets(context: PromptContext) -> PromptContext:
    """Return the context with the history and each other section cut to its budget."""
    budgets = context.budgets
    said = [(item, _cost(_shown(item, context))) for item in context.history]
    known, more_tasks = _known_that_fits(context)
    return replace(
        context,
        history=_with_their_calls(newest_blocks(said, budgets.history)),
        summary=lines_that_fit(context.summary, budgets.summary),
        known=known,
        more_tasks=more_tasks,
        knowledge=_documents_that_fit(context.knowledge, budgets.knowledge),
    )


def _known_that_fits(context: PromptContext) -> tuple[UserContext, bool]:
    """Return the profile, facts and tasks that fit, and whether open tasks were left out. The line that says
    so counts in the budget."""
    budget = context.budgets.context
    known = fitting(context.known, budget, context.budgets.facts, now=context.now)
    if not context.more_tasks and len(known.open_tasks) == len(context.known.open_tasks):
        return known, False
    said = budget.cost(MORE_TASKS) + 1
    less = replace(budget, amount=max(0, budget.amount - said))
    return fitting(context.known, less, context.budgets.facts, now=context.now), True


def _client_wishes(context: PromptContext) -> str:
    lines = (
        storable(text).strip() for text in context.instructions[: context.budgets.instructions].splitlines()
    )
    instructions = quoted("\n".join(text for text in lines if text))
    return render("client", instructions=instructions) if instructions else ""


def _person(context: PromptContext) -> str:
    lines = snippet_lines(context.known, context.now)
    known = "\n".join([*lines, *([MORE_TASKS] if context.more_tasks else [])])
    return known and render("person", known=known)


def _documents_that_fit(knowledge: str, budget: Budget) -> str:
    """Return the chunks that fit, separated by empty lines. Lines that are not quoted are quoted here."""
    purse, kept = Purse(budget), [LABEL]
    purse.spend(LABEL)
    for chunk in storable(knowledge).removeprefix(LABEL).split("\n\n"):
        lines = [text if text.startswith(">") else f"> {text}" for text in chunk.splitlines() if text]
        shown = "\n".join(lines)
        if lines and purse.take(f"\n{shown}"):
            kept.append(shown)
    return "\n\n".join(kept) if len(kept) > 1 else ""


def _setting(context: PromptContext) -> str:
    shared = f"{line(place_label(context.place))}, where others read along"
    where = "a private conversation" if context.place.private else shared
    reminders = SENT if context.reminders else NOT_SENT
    here = _here_lately(context)
    return render(
        "setting",
        now=clock(context.now, context.known.zone),
        where=where,
        reminders=reminders,
        here=f"\nAlso here lately: {', '.join(here)}" if here else "",
    )


def _here_lately(context: PromptContext) -> list[str]:
    """Return the other authors of the messages shown of a shared place, the latest first; nobody in private.
    Commas are removed from names, since they separate the names here."""
    if context.place.private:
        return []
    wrote = [one for one in context.history if isinstance(one, Message) and one.role == "user"]
    names = dict.fromkeys(speaker(message.author).replace(",", "") for message in reversed(wrote))
    names.pop(speaker(context.speaker).replace(",", ""), None)
    return list(names)[:MOST_HERE]


def _cost(shown: dict[str, Any]) -> str:
    """Return the text of an item, which is what counts in the budget; images cost nothing."""
    parts = shown["content"] if isinstance(shown.get("content"), list) else [shown]
    told = ("content", "text", "name", "arguments", "output")
    return "".join(str(part[name]) for part in parts for name in told if name in part)


def _with_images(message: dict[str, Any], images: Sequence[str]) -> dict[str, Any]:
    """Return the message with its images, in the form of the Responses API. An image without a URL is a line
    of text below."""
    names = (name for name in images if not name.startswith(PICTURE_URL))
    text = "\n".join(
        dict.fromkeys((message["content"], *names))
    )  # a message of one image may have that text already
    seen = [
        {"type": "input_image", "image_url": url, "detail": "auto"}
        for url in images
        if url.startswith(PICTURE_URL)
    ]
    return message | {"content": [{"type": "input_text", "text": text}, *seen] if seen else text}


def _form(context: PromptContext) -> str:
    """Return the section on the JSON form of the answer: ours, or the one that a client wants."""
    form = context.client.form
    if form is None:
        pictures = str(context.client.pictures or "")
        described = pictures and f"\n{render('pictures', count=pictures)}"
        return "" if context.narrow else f"{read('answer_form')}{described}"
    schema = json.dumps(form.schema, ensure_ascii=False)
    wanted = f"one JSON object that fits this JSON schema: {schema}" if form.schema else "one JSON object."
    return render("form", form=wanted)


def _with_their_calls(history: Sequence[Message | Item]) -> list[Message | Item]:
    """Leave out results whose call is not shown: servers refuse them."""
    calls = {item.call_id for item in history if isinstance(item, CallItem)}
    return [item for item in history if not isinstance(item, ResultItem) or item.call_id in calls]


def _dated(context: PromptContext) -> Iterator[bool]:
    """Yield for each item of the history whether it shows its date: a person's message at the start or after
    a pause. This does not depend on the time of the turn, so a message reads the same in the next one."""
    before: datetime | None = None
    for item in context.history:
        if isinstance(item, Message) and item.role == "user":
            yield before is None or item.sent_at - before > PAUSE
            before = item.sent_at
        else:
            yield False


def _with_state(item: Item, context: PromptContext) -> list[dict[str, Any]]:
    shown = _shown(item, context)
    return with_state(shown, item) if isinstance(item, CallItem) else [shown]


def _shown(item: Message | Item, context: PromptContext, dated: bool = True) -> dict[str, Any]:
    match item:
        case CallItem(id, name, arguments):
            return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
        case ResultItem(id, output):
            return {"type": "function_call_output", "call_id": id, "output": output}
        case MessageItem(role, text, images=images):
            told = text if role != "user" or context.place.private else indented(text)
            return _with_images({"role": role, "content": told}, images)
    if item.role != "user":
        return {"role": item.role, "content": item.text}
    text = f"[{moment(item.sent_at, context.known.zone)}] {item.text}" if dated else item.text
    return {"role": "user", "content": text if context.place.private else spoken(item.author, text)}
