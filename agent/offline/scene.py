"""What one model call of the stand-in is about: who speaks, what they say, what is known of them already.

All of it is read from the instructions (`agent.offline.prompt`) and the messages, leniently.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from agent.offline.facts import Draft, corrected, draft
from agent.offline.grammar import Courtesy, Fact, Question, Said, read
from agent.offline.languages import own_language
from agent.offline.person import SPEAKER
from agent.offline.phrases import brief, say
from agent.offline.prompt import Prompt, Wishes, prompt
from agent.offline.recall import Asker
from agent.offline.stating import WISHES, stated
from agent.offline.words import Language, bag, clean, language_of

MOST_FACTS = 8
"""Facts of one message that are kept; the message itself stays in the transcript."""

Turn = tuple[Literal["user", "assistant"], str]


@dataclass(frozen=True, slots=True)
class Scene:
    asker: Asker
    heard: str
    """The message to answer, without the name in front of it."""
    said: tuple[Said, ...]
    named: bool
    """Whether the person gave their name, in this conversation or before."""
    before: tuple[str, ...]
    """What the same person told earlier in the conversation, worded as it is remembered, oldest first."""
    shared: bool
    prompt: Prompt
    """With what was just said of how to answer: it holds at once."""
    wished: bool
    """Whether the message says how to answer."""

    def draft(self, fact: Fact) -> Draft:
        return draft(fact, self.asker.name, self.asker.language, self.shared, self.prompt.now)

    def say(self, key: str, *values: object, **named: object) -> str:
        """A phrase in the language that is wished, and as short."""
        speak = brief if self.prompt.wishes.short else say
        return speak(self.asker.speaks, key, *values, **named)


_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIX = re.compile(r"([^\W\d_][^:\n]{0,38}): (?=\S)")
_NOBODY = bag(
    "you user me anonymous default demo test guest local cli root admin ubuntu none unknown someone"
)
_MARKERS = bag("todo note remember task reminder done finished rappel tâche correction fyi ps")


def scene(instructions: str, turns: list[Turn]) -> Scene:
    """What this model call is about; `turns` ends with the message to answer."""
    known = prompt(instructions)
    at = known.now or _ANY_TIME
    users = [clean(text) for role, text in turns if role == "user"] or [""]
    prefix = "" if known.private else _common_prefix(users, known.speaker)
    heard = users[-1][len(prefix) + 2 :] if prefix else users[-1]
    own = [text.removeprefix(f"{prefix}: ") for text in users if not prefix or text.startswith(f"{prefix}: ")]
    wish = [pair for pair in stated(heard, at) if pair[0] in WISHES]
    before = [pair for text in own[:-1] for pair in stated(text, at)]
    known = replace(known, wishes=_followed(known.wishes, before, wish))
    shows: Language = known.wishes.language or "en"
    language = next((found for text in reversed(own) if (found := language_of(text))), shows)
    called = next((name for text in reversed(own) if (name := _stated_name(text))), None)
    asker = _asker(known, called, prefix, language)
    return Scene(
        asker=asker,
        heard=heard,
        said=tuple(thing for thing in read(heard, language) if not (wish and _is_the_wish(thing, at))),
        named=bool(called or known.name),
        before=_told_before(own[:-1], asker, shared=bool(prefix)),
        shared=bool(prefix),
        prompt=known,
        wished=bool(wish),
    )


def _followed(wishes: Wishes, before: list[tuple[str, str]], now: list[tuple[str, str]]) -> Wishes:
    """What is wished now, or else what the prompt says, or else what was wished in this conversation and has
    not come into the prompt yet."""
    given = {
        "language": wishes.language,
        "answer_length": "short" if wishes.short else None,
        "prefers_bullets": None if wishes.bullets is None else str(wishes.bullets).lower(),
    }
    told = dict(before) | {key: value for key, value in given.items() if value} | dict(now)
    return Wishes(
        language=own_language(told.get("language", "")),
        short=told.get("answer_length") == "short",
        bullets={"true": True, "false": False}.get(told.get("prefers_bullets", "")),
    )


def _is_the_wish(thing: Said, at: datetime) -> bool:
    """ "Can you answer me in French?" is no question to look up, "write to me in French" is not beyond us."""
    if isinstance(thing, Courtesy):
        return thing.kind in ("cannot", "listening")
    return isinstance(thing, Question) and bool(stated(thing.text, at))


def _asker(known: Prompt, called: str | None, prefix: str, language: Language) -> Asker:
    """By the name they gave, or else the one they are shown under; in private they are also "the user"."""
    shown = prefix or _display(known.speaker)
    given = (called, known.name, shown, known.speaker if shown else None)
    names = dict.fromkeys(name for name in given if name)
    nobody = () if prefix else tuple(dict.fromkeys(SPEAKER.values()))
    name = called or known.name or shown or None
    return Asker(name, names=(*names, *nobody), language=language, wished=known.wishes.language)


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
