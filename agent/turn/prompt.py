"""What the model gets to see: labelled sections in a fixed order, the part that never changes first.

1. system: the persona and the rules, what the program wishes through which the person writes; then, where
   there is something to say,
2. what is known of the person who speaks,
3. what this conversation was about so far,
4. what documents say,
5. where and when this is;
6. the last messages, as they were said;
7. what was said now.

`build_messages_for_model` is pure: the same scene gives the same bytes. Each part keeps within its budget and
is cut at whole items. What people and documents say is quoted (``> ``) wherever it stands among instructions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent.turn.budget import Budget, Purse, newest_that_fit, sentences_that_fit
from agent.turn.sentences import sentences
from agent.turn.user_snippet import LONGEST_NAME, fitting, line, offset, serialize_user_context_snippet
from memory.audience import Place
from memory.documents.quote import LABEL
from memory.people.profile import UserContext
from memory.records import Message
from memory.spans import note
from memory.text import storable
from prompts import read, render

_COLONS = re.compile("[:\ua789\u02d0\u02f8\u2236\ufe13\ufe55\uff1a]")
"""All that looks like one."""

MORE_TASKS = "More tasks are open than these; `get_recent_memories` lists them all."


@dataclass(frozen=True, slots=True)
class Budgets:
    """How much of each part is shown. The question itself is always whole."""

    context: Budget = Budget(500)
    summary: Budget = Budget(800)
    history: Budget = Budget(24_000)
    knowledge: Budget = Budget(4_000)
    instructions: int = 8_000
    """Characters of what the program asks for through which a person writes."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """All that a prompt is made of."""

    now: datetime
    speaker: str
    place: Place
    history: Sequence[Message]
    """The last messages of this conversation, oldest first, without the new one."""
    text: str
    """What was said now."""
    known: UserContext = field(default_factory=UserContext)
    """Of who speaks; facts and tasks that bear on what was said, the most telling first."""
    summary: str = ""
    """Of this conversation so far."""
    knowledge: str = ""
    """What documents say, as a quoted block; empty where the model is to look for itself."""
    persona: str = ""
    """Who the companion is; empty is the persona that comes with Hachi."""
    budgets: Budgets = field(default_factory=Budgets)
    instructions: str = ""
    """What the program asks for through which the person writes."""
    more_tasks: bool = False
    """More tasks are open than are told."""


def build_messages_for_model(scene: PromptContext) -> list[dict[str, str]]:
    """`{"role", "content"}` messages: one of the system, the history, the question last."""
    scene = within_budgets(scene)
    sections = {
        "persona": scene.persona.strip() or read("persona"),
        "rules": read("assistant"),
        "wishes of the program": _wishes_of_the_program(scene),
        "person": _person(scene),
        "summary": _summary(scene),
        "documents": scene.knowledge and render("knowledge", documents=scene.knowledge),
        "setting": _setting(scene),
    }
    note(sections=[(name, len(section)) for name, section in sections.items() if section])
    system = "\n\n".join(section for section in sections.values() if section)
    history = [_shown(message, scene.place) for message in scene.history]
    return [
        {"role": "system", "content": system},
        *history,
        _turn("user", scene.speaker, scene.text, scene.place),
    ]


def within_budgets(scene: PromptContext) -> PromptContext:
    """The scene as far as it is shown."""
    budgets = scene.budgets
    said = [(message, _shown(message, scene.place)["content"]) for message in scene.history]
    known, more_tasks = _known_that_fits(scene)
    told = [whole for part in sentences(scene.summary) if (whole := line(part, None))]
    return replace(
        scene,
        history=newest_that_fit(said, budgets.history),
        summary=" ".join(sentences_that_fit(told, budgets.summary)),
        known=known,
        more_tasks=more_tasks,
        knowledge=_documents_that_fit(scene.knowledge, budgets.knowledge),
    )


def _known_that_fits(scene: PromptContext) -> tuple[UserContext, bool]:
    """And whether more tasks are open than these, which is said within the same budget."""
    budget = scene.budgets.context
    known = fitting(scene.known, budget)
    if not scene.more_tasks and len(known.open_tasks) == len(scene.known.open_tasks):
        return known, False
    said = budget.cost(MORE_TASKS) + 1
    return fitting(scene.known, replace(budget, amount=max(0, budget.amount - said))), True


def _wishes_of_the_program(scene: PromptContext) -> str:
    lines = (storable(text).strip() for text in scene.instructions[: scene.budgets.instructions].splitlines())
    quoted = [f"> {text}" for text in lines if text]
    return render("client", instructions="\n".join(quoted)) if quoted else ""


def _person(scene: PromptContext) -> str:
    known = serialize_user_context_snippet(scene.known, scene.budgets.context)
    known = "\n".join([*known.splitlines(), *([MORE_TASKS] if scene.more_tasks else [])])
    return known and render("person", known=known)


def _summary(scene: PromptContext) -> str:
    return scene.summary and render("summary", summary=f"> {line(scene.summary, None)}")


def _documents_that_fit(knowledge: str, budget: Budget) -> str:
    """Whole chunks, which empty lines part. Every line is quoted, whoever made the block."""
    purse, kept = Purse(budget), [LABEL]
    purse.spend(LABEL)
    for chunk in storable(knowledge).removeprefix(LABEL).split("\n\n"):
        lines = [text if text.startswith(">") else f"> {text}" for text in chunk.splitlines() if text]
        quoted = "\n".join(lines)
        if lines and purse.take(f"\n{quoted}"):
            kept.append(quoted)
    return "\n\n".join(kept) if len(kept) > 1 else ""


def _setting(scene: PromptContext) -> str:
    shared = f"{line(str(scene.place))}, where others read along"  # of a long name, only the name is cut
    where = "a private conversation" if scene.place.private else shared
    zone = scene.known.zone
    local = scene.now.astimezone(zone)
    called = f"{zone}, " if str(zone) != "UTC" else ""
    now = (
        f"{local:%A %d %B %Y, %H:%M} ({called}{offset(local)})"
        if called
        else f"{local:%A %d %B %Y, %H:%M} UTC"
    )
    return render("setting", now=now, speaker=_name(scene.speaker), where=where)


def _shown(message: Message, place: Place) -> dict[str, str]:
    return _turn(message.role, message.author, message.text, place)


def _turn(role: str, author: str, text: str, place: Place) -> dict[str, str]:
    """In a shared place each message says who spoke; its further lines stand back, so that none of them can
    pass for what somebody else said."""
    if role != "user" or place.private:
        return {"role": role, "content": text}
    return {"role": role, "content": "\n  ".join(f"{_name(author)}: {text}".splitlines())}


def _name(author: str) -> str:
    """A display name: a line without the colon that ends it."""
    return line(_COLONS.sub(" ", author), LONGEST_NAME) or "someone"
