"""What somebody said, read with tables: facts, questions, tasks and courtesies.

A language is a `Tongue`: three tables of (kind, pattern), tried in order, first on what is asked of the
companion, then on questions, then on statements. Every pattern is tried at the start of one sentence, and a
sentence is at most `LONGEST` characters, so reading takes time in proportion to the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agent.offline.person_en import is_verb
from agent.offline.tongue import Table, Tongue
from agent.offline.tongues import TONGUES, VERBATIM
from agent.offline.words import Language, bag, straight

READ = 20_000
"""Characters of one message that are read."""
LONGEST = 400
"""Characters of one sentence that may be a fact; what is longer is a text, and stays in the transcript."""


@dataclass(frozen=True, slots=True)
class Fact:
    text: str
    about: Literal["name", "nickname", "self", "other", "quote"]
    """What it tells: the speaker's name, or something of theirs, of others, or of "us"."""
    value: str = ""
    """The name itself."""
    correction: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    text: str


@dataclass(frozen=True, slots=True)
class Todo:
    description: str
    status: Literal["open", "done"]
    otherwise: Fact | None = None
    """What it tells where no open task is meant: "I finished school in 2010"."""


@dataclass(frozen=True, slots=True)
class Courtesy:
    kind: str
    """The name of the phrase that answers it."""


Said = Fact | Question | Todo | Courtesy


def read(text: str, language: Language) -> list[Said]:
    """Everything that is said in a message, in order, each thing once."""
    tongue = TONGUES.get(language, VERBATIM)
    said: list[Said] = []
    person = ""
    parts = list(sentences(text[:READ]))
    for sentence in parts if len(text) <= READ else parts[:-1]:
        for clause, correction in clauses(sentence, tongue):
            if person and (pronoun := re.match(r"(?:he|she|il|elle)\b(?!')", clause, re.I)):
                clause = person + clause[pronoun.end() :]
            thing = _meaning(clause, tongue)
            if isinstance(thing, Fact):
                thing = replace(thing, correction=correction)
                person = _person(clause) or person
            if thing is not None and thing not in said:
                said.append(thing)
    return said


def sentences(text: str) -> Iterator[str]:
    """Cut at full stops and line ends, but neither in "Dr. No" nor in "J. R. R. Tolkien"."""
    held = ""
    for piece in re.split(r"(?<=[.!?…])\s+|(?<=[。！？؟۔।])\s*|[\r\n]+", text):
        held = f"{held} {piece}".strip() if held else piece.strip()
        if re.search(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Mme|M|[A-Z])\.$", held[-8:]):
            continue
        if held:
            yield held
        held = ""
    if held:
        yield held


def clauses(sentence: str, tongue: Tongue) -> Iterator[tuple[str, bool]]:
    """Without "well," and "no, actually", and cut where a new clause begins; and whether it corrects."""
    if len(sentence) > LONGEST:
        return
    correction = False
    while found := tongue.lead.match(sentence):
        correction = correction or bool(found["correction"])
        sentence = sentence[found.end() :]
    if sentence.endswith(("?", "？", "؟")) or tongue.subordinate.match(sentence):
        yield sentence, correction
        return
    start = 0
    for cut in tongue.cut.finditer(sentence):
        left = sentence[start : cut.start()]
        if cut["whom"] and not _person(left):
            continue
        if len(left.split()) >= 2 and not re.match(r"my [\w']+(?: \w+)?$", left, re.I):
            yield left, correction
            start = cut.end()
    yield sentence[start:], correction


def _meaning(clause: str, tongue: Tongue) -> Said | None:
    clause = straight(clause.strip())
    plain = clause.rstrip(" .!…。！,;:").strip('"“”«»* ')
    if not any(c.isalnum() for c in plain):
        return None
    bare = plain.rstrip("?？؟ ")
    if found := _first(tongue.requests, bare):
        return _made(*found, tongue)
    if plain.endswith(("?", "？", "؟")) or tongue.question.match(plain):
        return Question(plain)
    if found := _first(tongue.statements, plain):
        return _made(*found, tongue)
    return Fact(plain, "other") if tongue is TONGUES["en"] and _tells_of_somebody(plain) else None


def _first(table: Table, sentence: str) -> tuple[str, re.Match[str]] | None:
    return next(((kind, found) for kind, rule in table if (found := rule.match(sentence))), None)


def _made(kind: str, found: re.Match[str], tongue: Tongue) -> Said | None:
    text, parts = found.string, found.groupdict()
    rest = (parts.get("rest") or "").strip(" ,:-")
    match kind:
        case "todo" | "done":
            when = (parts.get("when") or "").strip()
            return Todo(f"{rest} {when}".strip(), "open" if kind == "todo" else "done")
        case "done?":
            return Todo(rest, "done", otherwise=Fact(text, "self"))
        case "name" | "nickname":
            return Fact(text, "name" if kind == "name" else "nickname", value=rest)
        case "self" | "other" | "quote":
            return Fact(text, "self" if kind == "self" else "other" if kind == "other" else "quote")
        case "remember":
            told = _meaning(rest, tongue)
            return told if isinstance(told, Fact | Todo) else Fact(rest, "other")
        case "ask":
            return Question(text)
        case _:
            return Courtesy(kind)


_NOT_NAMES = bag(
    "the this that it there here these those what who when where why how which he she we they you one some "
    "all everything nothing something yes no not and but or so if as at in on to for with life time today "
    "tomorrow yesterday"
)


def _tells_of_somebody(sentence: str) -> bool:
    """ "Mickael broke his shoulder", "Ana's brother is a cook": a name, then a verb."""
    found = re.match(r"([A-Z][\w-]+)((?: [A-Z][\w-]+)?(?:'s \w+(?: [A-Z]\w+)?)?) ([a-z][\w']*)", sentence)
    return bool(found) and found[1].lower() not in _NOT_NAMES and is_verb(found[3])  # type: ignore[index]


def _person(clause: str) -> str:
    """Whom "she" in the next sentence means."""
    found = re.match(r"(?:my|mon|ma) [\w-]+ ([A-ZÀ-Ý][\w-]+)\b", clause, re.I)
    if found and found[1][0].isupper():
        return found[1]
    return clause.split()[0] if _tells_of_somebody(clause) else ""
