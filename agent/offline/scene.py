"""What one model call of the stand-in is about: who speaks, what they say, which tasks are open.

All of it is read from the instructions and the messages, leniently.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent.offline.due import now_in
from agent.offline.facts import Draft, corrected, draft
from agent.offline.grammar import Fact, Said, read
from agent.offline.person import SPEAKER
from agent.offline.recall import Asker
from agent.offline.words import Language, bag, clean, language_of

MOST_FACTS = 8
"""Facts of one message that are kept; the message itself stays in the transcript."""

Turn = tuple[Literal["user", "assistant"], str]


@dataclass(frozen=True, slots=True)
class OpenTask:
    id: str
    description: str


@dataclass(frozen=True, slots=True)
class Scene:
    asker: Asker
    heard: str
    """The message to answer, without the name in front of it."""
    said: tuple[Said, ...]
    named: bool
    """Whether the person gave their name in this conversation."""
    before: tuple[str, ...]
    """What the same person told earlier in the conversation, worded as it is remembered, oldest first."""
    tasks: tuple[OpenTask, ...]
    now: datetime | None
    shared: bool

    def draft(self, fact: Fact) -> Draft:
        return draft(fact, self.asker.name, self.asker.language, self.shared, self.now)


_SPEAKING = re.compile(
    r"^[^\w\n]*speaking now[^\w\n]*:[ *`\"']*(.+?)[ *`\"'.]*$", re.IGNORECASE | re.MULTILINE
)
_TASK = re.compile(
    r"^[^\w\n]*\[task ([^\]\n]+)\]\s*(.+?)\s*(?:\((open|in_progress|done)\b[^()\n]*\))?\s*$", re.M
)
_WHERE = re.compile(r"^[^\w\n]*where[^\w\n]*:(.+)$", re.IGNORECASE | re.MULTILINE)
_PREFIX = re.compile(r"([^\W\d_][^:\n]{0,38}): (?=\S)")
_NOBODY = bag(
    "you user me anonymous default demo test guest local cli root admin ubuntu none unknown someone"
)
_MARKERS = bag("todo note remember task reminder done finished rappel tâche correction fyi ps")


def scene(instructions: str, turns: list[Turn]) -> Scene:
    """What this model call is about; `turns` ends with the message to answer."""
    users = [clean(text) for role, text in turns if role == "user"] or [""]
    speaking = _SPEAKING.search(instructions)
    given = speaking[1] if speaking else ""
    where = _WHERE.search(instructions)
    private = bool(where and re.search(r"\b(?:private|direct|dm)\b", where[1], re.I))
    prefix = "" if private else _common_prefix(users, given)
    heard = users[-1][len(prefix) + 2 :] if prefix else users[-1]
    own = [text.removeprefix(f"{prefix}: ") for text in users if not prefix or text.startswith(f"{prefix}: ")]
    language: Language = next((found for text in reversed(own) if (found := language_of(text))), "en")
    shown = prefix or _display(given)
    stated = next((name for text in reversed(own) if (name := _stated_name(text))), None)
    names = dict.fromkeys(name for name in (stated, shown, given if shown else None) if name)
    nobody = () if prefix else tuple(dict.fromkeys(SPEAKER.values()))
    asker = Asker(name=stated or shown or None, names=(*names, *nobody), language=language)
    return Scene(
        asker=asker,
        heard=heard,
        said=tuple(read(heard, language)),
        named=bool(stated),
        before=_told_before(own[:-1], asker, shared=bool(prefix)),
        tasks=tuple(
            OpenTask(id, text) for id, text, status in _TASK.findall(instructions) if status != "done"
        ),
        now=now_in(instructions),
        shared=bool(prefix),
    )


def _told_before(texts: list[str], asker: Asker, shared: bool) -> tuple[str, ...]:
    """Facts of earlier messages, which no search brings again since they are in sight."""
    told: dict[str, None] = {}
    for text in texts:
        language = language_of(text) or asker.language
        facts = [thing for thing in read(text, language) if isinstance(thing, Fact)]
        for fact in facts[:MOST_FACTS]:
            content = draft(fact, asker.name, language, shared).content
            told[content] = None
            if fact.correction:
                older = corrected(content, [{"id": old, "content": old} for old in told])
                told.pop(older or "", None)
    return tuple(told)


def _display(given: str) -> str:
    """A user id as a name: `mickael` is Mickael; `you`, `u1` and `8f3a` are nobody's."""
    given = re.split(r"[(,]", given)[0].strip()
    if given.lower() in _NOBODY or any(c.isdigit() for c in given):
        return ""
    return given.capitalize() if given.isascii() and given.islower() else given


def _common_prefix(users: list[str], given: str) -> str:
    """The name before the last message, where a shared place puts one before each."""
    if given and users[-1].casefold().startswith(f"{given}: ".casefold()):
        return users[-1][: len(given)]
    found = _PREFIX.match(users[-1])
    if not found or found[1].lower() in _MARKERS:
        return ""
    return found[1] if len(users) > 1 and all(map(_PREFIX.match, users)) else ""


def _stated_name(text: str) -> str | None:
    facts = [thing for thing in read(text, language_of(text) or "en") if isinstance(thing, Fact)]
    named = [fact for fact in facts if fact.about == "name"] or [f for f in facts if f.about == "nickname"]
    if not named:
        return None
    return named[-1].value.title() if named[-1].value.islower() else named[-1].value
