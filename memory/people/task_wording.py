"""Whether two wordings mean one task: "call the dentist" and "to call dentist!" do, "call Anna" and "call
Ben" do not. Small words, case, accents, order and endings say little; a day, a number, a name or a "not" says
much.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from memory.compare import Statement, compare, normalise
from memory.compare.chunks import cut, emoji_of, parts_of
from memory.compare.vocabulary import Vocabulary, vocabulary
from memory.index.embedders import CAUTIOUS

_SHOWN = re.compile(r"\[?\s*(?:task\s+)?#?([^\]]*?)\s*\]?", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:please|pls|to|todo|task|i (?:need|have|must|should)(?: to)?|remind me (?:to|about)|remember to"
    r"|(?:do not|don['’]t) forget to|s['’]il (?:te|vous) plaît|stp|svp|rappelle[ -]moi (?:de|d['’])|penser à"
    r"|il faut|(?:ne )?pas oublier (?:de|d['’])|je dois|בבקשה|תזכירי? לי|להזכיר לי|לא לשכוח|(?:אני )?צריכה?)"
    r"(?:[\s:]+|(?<=['’])))+",
    re.IGNORECASE,
)
"""What a task may be asked for with, and says nothing of it."""
_SMALL = frozenset(
    """
    a an the my our please pls just some and of & le la les l' un une du de des d' mon ma mes notre nos et
    svp stp את ואת של שלי שלנו בבקשה
    """.split()
)
_WHEN = frozenset("on in at by le à en ce ב".split())
"""Small before a day, a month or a number."""
_BINDING = {
    word: word
    for word in """
    to for from with about against pour avec par contre chez vers sur à על עם אל בשביל לגבי
    """.split()
} | {"au": "à", "aux": "à"}
"""Belong to the word after them: "call Ann about Ben" is not "call Ben about Ann"."""
_TURNS = frozenset(
    "off on out in up down back away over again not no never without pas plus sans לא אל בלי".split()
)
"""Added, they make another task of it."""
_DENIES = frozenset("not no never without pas jamais sans לא אל בלי".split())
_FINISHING = frozenset(
    """
    done finished completed complete it is was been have has had i i've we already now finally today yesterday
    this that morning afternoon evening tonight task on in at by
    fait faite fini finie termine terminee deja enfin aujourd'hui hier j' ai c' est tache ce cette matin soir
    סיימתי עשיתי כבר היום אתמול זה הושלם בוצע הבוקר
    """.split()
)
"""Said of what is finished, and says nothing of which task it is."""
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "r", "e", "ee", "es", "x")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Wording:
    """What a description says, without case, accents, punctuation and small words."""

    bound: tuple[str, ...]
    """Its words, each with what binds it: call, ann, about ben."""
    names: tuple[str, ...]
    """Those with a capital inside the sentence."""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.rpartition(" ")[2] for word in self.bound)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@lru_cache(maxsize=4096)
def wording(text: str) -> _Wording:
    chunks = cut(_OPENING.sub("", text.strip())) or cut(text)
    telling = any(chunk.surface[0].islower() for chunk in chunks)  # Not Where All Begin So
    parts = [
        (part, telling and chunk.capital and at > 0)
        for at, chunk in enumerate(chunks)
        for part in _parts(chunk.low)
    ]
    bound: list[str] = []
    binding = ""
    for at, (part, capital) in enumerate(parts):
        following = parts[at + 1][0] if at + 1 < len(parts) else ""
        if (part in _SMALL and not capital) or (part in _WHEN and _is_when(following)):
            continue
        if part in _BINDING and following:
            binding = _BINDING[part] + " "
            continue
        defined = at > 0 and parts[at - 1][0] in ("את", "ואת") and part[0] == "ה" and len(part) > 3
        bound.append(binding + _fold(part[1:] if defined else _numbers().get(part, part)))
        binding = ""
    if len(bound) < 3:
        bound += emoji_of(text)
    names = tuple(_fold(part) for part, capital in parts if capital)
    return _Wording(tuple(bound) or (normalise(text),), names)


def _parts(low: str) -> Iterator[str]:
    for part in _HYPHEN.split(low) if "-" in low else [low]:
        yield from parts_of(part) if "'" in part and not part.endswith("'s") else [part]


def _fold(word: str) -> str:
    """Without accents, where they are accents: in other scripts the marks are letters."""
    if word.isascii():
        return word
    kept = ""
    for letter in unicodedata.normalize("NFD", word):
        if not (
            unicodedata.combining(letter) and unicodedata.name(kept[-1:] or " ", "")[:5] in ("LATIN", "GREEK")
        ):
            kept += letter
    return unicodedata.normalize("NFC", kept)


@cache
def _numbers() -> dict[str, str]:
    return {word: digits for of in _spoken() for word, digits in of.numbers.items() if digits.isdigit()}


@cache
def _days() -> frozenset[str]:
    return frozenset(word for of in _spoken() for word in (*of.months, *of.weekdays))


def _spoken() -> list[Vocabulary]:
    return [vocabulary(language) for language in ("english", "french", "hebrew")]


def _is_when(word: str) -> bool:
    return word[:1].isdecimal() or word in _days() or word in _numbers()


def same_words(one: str, other: str) -> bool:
    """Whether two descriptions have the same words; names among them in the same order."""
    a, b = wording(one), wording(other)
    return sorted(a.bound) == sorted(b.bound) and _names_in_order(a, b)


def _names_in_order(a: _Wording, b: _Wording) -> bool:
    """ "Call Ann about Ben" is not "call Ben about Ann", in a language with other small words neither."""
    return [name for name in a.names if name in b.names] == [name for name in b.names if name in a.names]


def adds(more: str, less: str) -> bool:
    """Whether the one says all that the other does and more, and surely of the same task."""
    rich, poor = Counter(wording(more).bound), Counter(wording(less).bound)
    if not poor < rich or _TURNS & (rich - poor).keys():
        return False
    old, new = Statement(less, (), _LONG_AGO), Statement(more, (), _LONG_AGO)
    return compare(old, new, 0.0, CAUTIOUS).relation in ("richer", "same")


def told(said: str) -> list[str]:
    words = wording(said).words
    return [word for word in words if word not in _FINISHING] or list(words)


def may_mean(said: str, description: str) -> bool:
    """Whether all that was said of a task is in its description, be it in other forms of the words."""
    asked, there = wording(said), wording(description)
    exact = {*there.names, *asked.names}
    if _DENIES & {*there.words} - {*asked.words} or not _names_in_order(asked, there):
        return False
    found = all(any(_alike(word, other, exact) for other in there.words) for word in told(said))
    return found or adds(said, description)


def _alike(word: str, other: str, exact: set[str]) -> bool:
    if word == other or word in exact or other in exact:
        return word == other
    if _UNSPACED.search(word):
        return len(word) > 1 and word in other
    return not _forms(word).isdisjoint(_forms(other))


@lru_cache(maxsize=4096)
def _forms(word: str) -> frozenset[str]:
    """The word, and what it may be a form of; pairs of letters, where nothing is written apart."""
    if _UNSPACED.search(word) and len(word) > 1:
        return frozenset(word[at : at + 2] for at in range(len(word) - 1))
    stems = {
        word[: -len(end)]
        for end in _ENDINGS
        if word.endswith(end) and len(word) - len(end) >= 3 + (end == "e")
    }
    stems |= {stem[:-1] for stem in stems if stem[-1] == stem[-2] and len(stem) > 3}
    joined = [n for n in (1, 2) if len(word) > n + 2 and all(letter in "הלבמכוש" for letter in word[:n])]
    return frozenset({word, *stems, *(word[n:] for n in joined)})


@lru_cache(maxsize=4096)
def forms_in(text: str) -> frozenset[str]:
    words = {*wording(text).words} - _FINISHING
    return frozenset().union(*(_forms(word) for word in words))


def bare_id(id: Any) -> Any:
    """An id as it stands in the prompt, "[task 1a2b3c4d]" or part of that, is that id; blank and null are
    none. What is no text stays as it is."""
    if not isinstance(id, str):
        return id
    found = _SHOWN.fullmatch(id.strip())
    bare = found[1] if found else id.strip()
    return None if bare.lower() in {"", "null", "none", "new"} else bare
