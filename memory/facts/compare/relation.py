"""How a new statement relates to a known one, decided without any model.

Words prove only that two statements are the same: the same words, or the same words with the opening clause
at the end. A word that only one of the two has keeps them apart, be it a number, a name, a negation or a
synonym. Both are kept then, unless a model rules otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from rapidfuzz.distance import Levenshtein

from memory.facts.compare.normalise import normalise
from memory.facts.compare.tokens import Word, emoji_of, words_of

Relation = Literal["same", "subsumed", "contradiction", "outdated", "different"]

NEAR = 1 / 3
"""Where the threshold for a shared topic lies between `recall`, which any two facts about one person reach,
and `dedupe`. "Lives in Rome" and "moved to Oslo" share little more than their subject."""
NEARLY_THE_SAME_SPELLING = 0.8
"""Normalised Levenshtein similarity above which two texts count as similar, whatever their vectors say."""


class Thresholds(Protocol):
    """Cosine similarities that are calibrated for one embedder."""

    @property
    def dedupe(self) -> float: ...

    @property
    def recall(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the new statement relates to the old one.

    same: it says the same. different: both are kept. Words prove no other. A model's ruling or a person's
    correction yields further ones. contradiction: it ends the old one. subsumed: the old one says all of it
    already. outdated: it was stated before the statement that ended it.
    """

    relation: Relation
    reason: str


DIFFERENT, SAME = Verdict("different", "other words"), Verdict("same", "the same words")


def alike(one: str, other: str, similarity: float, thresholds: Thresholds) -> bool:
    """Whether two statements share a topic, as far as vectors and spelling tell. `similarity` is the cosine
    of their embeddings, calibrated by `thresholds`."""
    near = similarity >= thresholds.recall + NEAR * (thresholds.dedupe - thresholds.recall)
    spelling = Levenshtein.normalized_similarity(normalise(one), normalise(other))
    return near or spelling > NEARLY_THE_SAME_SPELLING


def same_words(one: str, other: str) -> bool:
    """Whether both texts have the same words in the same order, or with the opening clause at the end. Case,
    punctuation and emoji that only one of them has do not count."""
    if normalise(one) == normalise(other):
        return True
    a, b = words_of(one), words_of(other)
    if not a or len(a) != len(b) or _asks(one) != _asks(other):
        return False
    faces = {emoji_of(one), emoji_of(other)}
    if len(faces) == 2 and (() not in faces or len(a) < 3):
        return False
    return _keys(a) == _keys(b) or _moved(a, b) or _moved(b, a)


def _moved(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether `other` is `one` with its opening clause at the end: two words or more, without a negation.
    The first of them loses its capital there: a name that addresses or explains somebody keeps it. Numbers
    at the joint may belong to either side."""
    if not one[0].capital or any(word.negates for word in one):
        return False
    for at in range(2, len(one) - 1):
        opening, rest, moved = one[:at], one[at:], other[len(one) - at]
        if _keys(other) == [*_keys(rest), *_keys(opening)]:
            return not (moved.capital or moved.number or opening[-1].number or rest[-1].number)
    return False


def _asks(text: str) -> bool:
    return any(mark in text for mark in "?？؟")


def _keys(words: Sequence[Word]) -> list[str]:
    return [word.key for word in words]
