"""Compares task descriptions: "call the dentist" and "Call dentist!" are one task, "call Anna" and "call Ben"
are two. Case, accents, punctuation, articles and a polite opening are ignored. Any other word counts."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memory.facts.compare.cues import negations
from memory.facts.compare.normalise import normalise
from memory.facts.compare.relation import added_words, opens_plainly
from memory.facts.compare.tokens import Word, emoji_of, words_of

_SHOWN = re.compile(r"\[?\s*(?:task\s+)?#?([^\]]*?)\s*\]?", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:please|to|todo|task|i (?:need|have) to|remind me to|remember to|(?:do not|don['’]t) forget to"
    r"|rappelle[ -]moi (?:de|d['’])|n['’]oublie pas (?:de|d['’])|penser à|תזכירי? לי|לא לשכוח)"
    r"(?:[\s:]+|(?<=['’])))+",
    re.IGNORECASE,
)
"""Phrases that introduce a task and do not describe it."""
_ARTICLES = frozenset("the a an le la les un une du de des את".split())
_FINISHING = frozenset(
    "i i've we ai c'est done finished finally already just today yesterday it is fait fini deja hier"
    " סיימתי עשיתי כבר היום אתמול".split()
)
"""Words that report a task as finished and do not identify it."""
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "r", "e", "ee")
_ELIDED = re.compile(r"^[^\W\d_]{1,2}'(?=\w)")
_ACCENTS = re.compile("(?<=[a-zα-ω])[\u0300-\u036f]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class _Wording:
    words: tuple[str, ...]
    """The words without case, accents, punctuation and articles."""
    names: frozenset[str]
    """The words with a capital inside the sentence."""

    @property
    def text(self) -> str:
        return " ".join(self.words)


@lru_cache(maxsize=1024)
def wording(text: str) -> _Wording:
    told = [word for word in _asked_for(text) if word.key not in _ARTICLES]
    sentence = any(not word.capital for word in told)  # Not Where All Begin So
    names = frozenset(_plain(word) for word in told[1:] if word.capital and sentence)
    words = [_plain(word) for word in told]
    words += emoji_of(text) if len(words) < 3 else ()
    return _Wording(tuple(words) or (normalise(text),), names)


def _asked_for(text: str) -> Sequence[Word]:
    return words_of(_OPENING.sub("", text.strip())) or words_of(text)


def _plain(word: Word) -> str:
    bare = unicodedata.normalize("NFD", _ELIDED.sub("", word.key))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", bare))


def same_words(one: str, other: str) -> bool:
    """Whether two descriptions have the same words in the same order, even if the end comes first: "on Monday
    call Ann" is "call Ann on Monday", and "call Ann about Ben" is not "call Ben about Ann"."""
    a, b = wording(one).words, wording(other).words
    return len(a) == len(b) and any((*a[at:], *a[:at]) == b for at in range(len(a)))


def adds(more: str, less: str) -> bool:
    """Whether `more` contains all of `less` and plainly adds a time, a place, a companion or an item."""
    rich, poor = _asked_for(more), _asked_for(less)
    added = added_words(poor, rich) if len(poor) > 1 else ()
    return bool(added) and opens_plainly(added)


def told(said: str) -> list[str]:
    words = wording(said).words
    return [word for word in words if word not in _FINISHING] or list(words)


def may_mean(said: str, description: str) -> bool:
    """Whether the description contains all words of `said`, or other forms of them. Names and numbers must be
    the same and in the same order, and `said` must contain each "not" of the description."""
    asked, there = wording(said), wording(description)
    if any(word in negations() or word.endswith("n't") for word in {*there.words} - {*asked.words}):
        return False
    exact = asked.names | there.names
    words = told(said)
    found = [next((at for at, w in enumerate(there.words) if _alike(word, w, exact)), -1) for word in words]
    named = [at for word, at in zip(words, found, strict=True) if word in exact]
    return (-1 not in found and named == sorted(named)) or adds(said, description)


def _alike(word: str, other: str, exact: frozenset[str]) -> bool:
    if word == other or word in exact or other in exact:
        return word == other
    if _UNSPACED.search(word):
        return len(word) > 1 and word in other
    return not _forms(word).isdisjoint(_forms(other))


@lru_cache(maxsize=1024)
def _forms(word: str) -> frozenset[str]:
    """The word and the words it may be a form of; for scripts without spaces, pairs of letters."""
    if _UNSPACED.search(word) and len(word) > 1:
        return frozenset(word[at : at + 2] for at in range(len(word) - 1))
    fitting = [end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= 3 + (end == "e")]
    stems = {word.removesuffix(end) for end in fitting}
    stems |= {stem[:-1] for stem in stems if len(stem) > 3 and stem[-1] == stem[-2]}
    joined = [n for n in (1, 2) if len(word) > n + 2 and all(letter in "הלבמכוש" for letter in word[:n])]
    return frozenset({word, *stems, *(word[n:] for n in joined)})


@lru_cache(maxsize=1024)
def forms_in(text: str) -> frozenset[str]:
    words = {*wording(text).words} - _FINISHING
    return frozenset().union(*(_forms(word) for word in words))


def bare_id(id: Any) -> Any:
    """The id in "[task 1a2b3c4d]", which the prompt shows, or in a part of it. None if it is blank or "null".
    A value that is no text is returned unchanged."""
    if not isinstance(id, str):
        return id
    found = _SHOWN.fullmatch(id.strip())
    bare = found[1] if found else id.strip()
    return None if bare.lower() in {"", "null", "none", "new"} else bare
