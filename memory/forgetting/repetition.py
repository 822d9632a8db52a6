"""Tell by its words whether a reply repeats a forgotten fact or message: `repeats`."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import pairwise

from memory.facts.compare import normalise
from memory.index.bm25 import beginnings, folded, stems
from memory.process.pace import unhurried
from memory.text import sentences

_LINK = re.compile(r"https?://[^\s<>()\"“”]+")
_RUN = re.compile(r"[^\s<>(),;:\"“”]+")
_DOMAIN = re.compile(r"[\w.-]+")
_DIGITS = re.compile(r"\d+")
FEWEST_DIGITS = 4
_YEAR = re.compile(r"(?:19|20)\d\d")
FEWEST = 2
"""The fewest words that identify a fact. A shorter one is compared with its author's names, or as a whole."""
FEW = 8
"""The most texts for which replies are first searched for a few letters."""
TELLING = 3
"""The fewest words by which a message is recognised in a reply. They must be close together, because a short
message would otherwise match any long French reply."""


def repeats(text: str, fact: str, names: str = "") -> bool:
    """Return whether the text has all words of the fact, or an identifier of it: an address, or a number of
    four or more digits that is no year. The author's `names` may be missing, because Hachi says "you"."""
    wanted = _identifiers_of(fact)
    return bool(wanted and not wanted.isdisjoint(_identifiers(text))) or has_words_of(text, fact, names)


def has_words_of(text: str, fact: str, names: str = "") -> bool:
    """Return whether the text has all words of the fact."""
    wanted = _telling(fact, names)
    if len(wanted) >= FEWEST:
        return wanted <= stems(text)
    wording = normalise(fact)
    return " " in wording and re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", normalise(text)) is not None


def _telling(fact: str, names: str) -> frozenset[int]:
    """Return the words that identify a fact. The author's `names` count only in a short one."""
    wanted = stems(fact)
    rest = wanted - stems(names)
    return rest if len(rest) >= FEWEST else wanted


def _together(text: str, message: str, names: str) -> bool:
    """Return whether N + 1 consecutive sentences contain the words of a message of N sentences."""
    many, parts = len(sentences(message)) + 1, sentences(text)
    in_a_row = (" ".join(parts[at : at + many]) for at in range(max(1, len(parts) - many + 1)))
    return any(has_words_of(some, message, names) for some in in_a_row)


def _identifiers(text: str) -> frozenset[str]:
    found = _LINK.findall(text)
    for run in _RUN.findall(_LINK.sub(" ", text)):
        found += _addresses(run) or (
            digits for digits in _DIGITS.findall(run) if len(digits) >= FEWEST_DIGITS
        )
    identifiers = frozenset(one.casefold().rstrip(".,!?") for one in found)
    return frozenset(one for one in identifiers if not _YEAR.fullmatch(one))


@lru_cache(maxsize=FEW)  # a fact is compared with every later reply
def _identifiers_of(fact: str) -> frozenset[str]:
    return _identifiers(fact)


def _addresses(run: str) -> list[str]:
    """Return the e-mail addresses in a text without spaces. A single pattern would take quadratic time."""
    parts = [(name, _DOMAIN.match(after)) for name, after in pairwise(run.split("@"))]
    found = [(name, domain[0]) for name, domain in parts if name and domain]
    return [f"{name}@{domain}" for name, domain in found if "." in domain.strip(".")]


@dataclass(frozen=True, slots=True)
class Hint:
    """What every repetition of a text contains. Most replies lack it, and need not be compared."""

    letters: frozenset[str]
    """The beginnings of its words: a repetition contains all of them. Empty if it is compared as a whole."""
    identifiers: frozenset[str]
    """A repetition may contain one of these instead."""

    @classmethod
    def of(cls, text: str, names: str) -> "Hint":
        wanted, letters = _telling(text, names), beginnings(text)
        found = {letters[word] for word in wanted} if len(wanted) >= FEWEST else ()
        return cls(frozenset(found) - {""}, _identifiers_of(text))

    def follows_from(self, other: "Hint") -> bool:
        """Return whether every text with this hint has the other one, too."""
        return other != self and other.letters <= self.letters and other.identifiers >= self.identifiers

    def is_in(self, text: str) -> bool:
        lower, cased = folded(text), text.casefold()
        return all(part in lower for part in self.letters) or any(one in cased for one in self.identifiers)


@dataclass(frozen=True, slots=True)
class ForgottenTexts:
    """The texts of a cascade, which replies may repeat."""

    person: str
    facts: Collection[str]
    messages: Collection[str] = ()
    """The texts of messages, which are recognised by words close together."""
    at: Mapping[str, datetime] = field(default_factory=dict)
    """When each of these texts was first stated. Older replies do not count."""

    def hints(self, names: str) -> list[Hint]:
        """Return hints, of which each repetition has one; none if there are too many texts to save time."""
        texts = {*self.facts, *self.messages}
        hints = {Hint.of(one, names) for one in texts} if len(texts) <= FEW else ()
        return [hint for hint in hints if not any(map(hint.follows_from, hints))]

    async def by_key(self, names: str) -> "ByKey":
        """Sort the texts by what a repetition must contain: the rarest word, or an identifier. So a reply is
        not compared with each of thousands of texts."""
        words, often, found = dict[str, frozenset[int]](), Counter[int](), ByKey()
        async for text in unhurried({*self.facts, *self.messages}):
            words[text] = _telling(text, names)
            often.update(words[text])
        async for fact in unhurried({*self.facts}):
            whole = len(words[fact]) < FEWEST
            found.facts[None if whole else min(words[fact], key=often.__getitem__)].append(fact)
            for identifier in _identifiers(fact):
                found.facts[identifier].append(fact)
        async for said in unhurried({*self.messages}):
            if len(stems(said)) >= TELLING:
                found.messages[min(words[said], key=often.__getitem__)].append(said)
        return found


@dataclass(frozen=True, slots=True)
class ByKey:
    """Forgotten texts by what a repetition must contain."""

    facts: defaultdict[int | str | None, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By a word, by an identifier, or by None if they are compared as a whole."""
    messages: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def repeated_in(self, text: str, names: str) -> list[str]:
        """Return the facts and messages that the text repeats."""
        keys = [None, *stems(text), *_identifiers(text)]
        facts = {fact for key in keys for fact in self.facts.get(key, ())}
        near = {said for word in stems(text) for said in self.messages.get(word, ())}
        found = [fact for fact in facts if repeats(text, fact, names)]
        return found + [
            said for said in near if has_words_of(text, said, names) and _together(text, said, names)
        ]
