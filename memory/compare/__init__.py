"""What a new statement is to one that is kept already, decided without any model.

The rule that keeps facts safe: where each of two statements gives a value that the other lacks, they are two
facts, however alike they sound. That holds in every language. Only what is proved goes further: the same
words, all the words and more (`entailment`), or an end to what was said before (`conflicts`), and the last
two only in a language whose small words are known.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from rapidfuzz.distance import Levenshtein

from memory.compare.alignment import align
from memory.compare.chunks import chunks_of, emoji_of
from memory.compare.conflicts import conflict
from memory.compare.entailment import obstacle, one_or_several
from memory.compare.normalise import content_key, normalise
from memory.compare.statements import Token, read, shared_language
from memory.compare.vocabulary import Vocabulary, vocabulary

__all__ = ["Relation", "Statement", "Verdict", "compare", "content_key", "normalise"]

Relation = Literal["same", "richer", "coarser", "contradiction", "stale", "different", "doubtful"]

NEARLY_THE_SAME_SPELLING = 0.8
"""Normalised Levenshtein similarity above which a judge may be asked, whatever the embedder thinks."""


class Thresholds(Protocol):
    """Cosine similarities that are calibrated for one embedder."""

    @property
    def dedupe(self) -> float: ...

    @property
    def recall(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    subjects: tuple[str, ...]
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the new statement is to the old one.

    same: nothing new. richer: it says all the old one does, and more. coarser: the old one says all it does,
    and more. contradiction: it is newer and ends the old one. stale: it is older than what ended it.
    different: both are kept. doubtful: both are kept unless a model judges otherwise.
    """

    relation: Relation
    reason: str


def compare(old: Statement, new: Statement, similarity: float, thresholds: Thresholds) -> Verdict:
    """`similarity` is the cosine of their embeddings, by the embedder that `thresholds` belong to."""
    key, other_key = normalise(old.text), normalise(new.text)
    if key == other_key:
        return Verdict("same", "the same words")
    if verdict := _spelt_alike(old.text, new.text):
        return verdict
    if _strangers(old, new):
        return Verdict("different", "about other subjects")
    # At `recall` two texts share a subject, which any two facts about one person do.
    near = similarity >= (thresholds.recall + thresholds.dedupe) / 2
    near = near or Levenshtein.normalized_similarity(key, other_key) > NEARLY_THE_SAME_SPELLING
    return _read_and_compare(old, new, near)


def _read_and_compare(old: Statement, new: Statement, near: bool) -> Verdict:
    language = shared_language(old.text, new.text)
    # Where there are no capitals, the subjects tell what is a name.
    subjects = (*old.subjects, *new.subjects) if language == "hebrew" else ()
    names = frozenset(subject.casefold() for subject in subjects)
    one, other = read(old.text, language, names), read(new.text, language, names)
    verdict = None
    if language:
        words = vocabulary(language)
        verdict = _conflict(old, new, one, other, words) or _entailment(old, new, one, other, words, near)
    return verdict or _apart(one, other, near)


def _spelt_alike(old: str, new: str) -> Verdict | None:
    """The same words, where only punctuation or decoration differs."""
    if chunks_of(old) != chunks_of(new) or not chunks_of(old):
        return None
    if old.rstrip(" \"'")[-1:] != new.rstrip(" \"'")[-1:] and "?" in {old.rstrip()[-1:], new.rstrip()[-1:]}:
        return Verdict("different", "one of them is a question")
    faces = {emoji_of(old), emoji_of(new)}
    if len(faces) == 2 and (() not in faces or len(chunks_of(old)) < 3):
        return Verdict("different", "differs in an emoji")
    return Verdict("same", "the same words")


def _strangers(old: Statement, new: Statement) -> bool:
    one, other = ({name.casefold() for name in said.subjects} for said in (old, new))
    return bool(one) and bool(other) and one.isdisjoint(other)


def _conflict(
    old: Statement, new: Statement, one: Sequence[Token], other: Sequence[Token], words: Vocabulary
) -> Verdict | None:
    if new.said_at >= old.said_at and (reason := conflict(one, other, words)):
        return Verdict("contradiction", reason)
    if new.said_at < old.said_at and (reason := conflict(other, one, words)):
        return Verdict("stale", f"said before what is known: {reason}")
    return None


def _entailment(
    old: Statement,
    new: Statement,
    one: Sequence[Token],
    other: Sequence[Token],
    words: Vocabulary,
    near: bool,
) -> Verdict | None:
    inside, outside = align(one, other, words), align(other, one, words)
    found = inside or outside
    if found is None:
        return None
    if inside and outside:
        return _equal(one, other)
    if reason := obstacle(found, _subject_length(found.poor)):
        turns = found.words.alters | found.words.doubts
        turned = any(found.rich[place].surface.casefold() in turns for place in found.extra)
        ended = any(found.rich[place].kind in ("negation", "change") for place in found.extra)
        return Verdict("doubtful" if near and (turned or ended) else "different", reason)
    if inside is None:
        return Verdict("coarser", f"already said, with {_some(found.rich, found.extra)}")
    if new.said_at < old.said_at:
        return Verdict("different", "says more, but was said before")
    return Verdict("richer", f"says more: adds {_some(found.rich, found.extra)}")


def _equal(one: Sequence[Token], other: Sequence[Token]) -> Verdict:
    """The values of both, once each holds all of the other's in the same order."""
    carried = [[token for token in tokens if token.carries] for tokens in (one, other)]
    predicate = carried[0][1:2] == list(one[1:2])
    if any(one_or_several(a, b) for a, b in list(zip(*carried, strict=True))[1 + predicate :]):
        return Verdict("doubtful", "one or several")
    joints = [{token.key for token in tokens if token.key in ("be", "have")} for tokens in (one, other)]
    if joints[0] and joints[1] and joints[0] != joints[1]:
        return Verdict("doubtful", "being is not having")
    if _elsewhere(one, other):
        return Verdict("doubtful", "in is not on")
    for place, (a, b) in enumerate(zip(*carried, strict=True)):
        following = carried[0][place + 1].key if place + 1 < len(carried[0]) else ""
        if a.possessive != b.possessive and following not in _SAID_BOTH_WAYS:
            return Verdict("doubtful", f"may be about what belongs to {a.surface}")
    return Verdict("same", "the same in other words")


def _elsewhere(one: Sequence[Token], other: Sequence[Token]) -> bool:
    """Whether one has *in* where the other has *on*, other than before a date."""
    joints = []
    for tokens in (one, other):
        pairs = itertools.pairwise(tokens)
        joints.append({a.key for a, b in pairs if a.key in ("in", "on") and b.kind != "number"})
    return bool(joints[0] and joints[1] and joints[0] != joints[1])


_SAID_BOTH_WAYS = frozenset({"born", "birthday", "work", "named", "live", "married"})
"""*Ann's date of birth is* and *Ann was born* say one thing."""


def _subject_length(tokens: Sequence[Token]) -> int:
    """How many tokens say whom or what it is about: *Ann's cat*, *la mère de Lucie*, *Chris T.*"""
    length = 1
    while length < len(tokens):
        last, following = tokens[length - 1], tokens[length]
        if following.key == "of" and length + 1 < len(tokens):
            length += 2
        elif last.possessive or (last.kind == following.kind == "name" and not following.boundary):
            length += 1
        else:
            break
    return length


def _apart(one: Sequence[Token], other: Sequence[Token], near: bool) -> Verdict:
    """Neither says the other: which value tells them apart."""
    only, others = _without(one, other), _without(other, one)
    if not only and not others:
        return Verdict("doubtful", "the same words in another order")
    if near and any(token.kind in ("negation", "change") for token in (*only, *others)):
        return Verdict("doubtful", "one of them denies something, or says that it ended")
    for kind in ("number", "name", "negation"):
        values = [[token.surface for token in tokens if token.kind == kind] for tokens in (only, others)]
        if any(values):
            told = " / ".join(", ".join(found) or "none" for found in values)
            return Verdict("different", f"differs in a {kind}: {told}")
    told = " / ".join(", ".join(token.surface for token in tokens) or "nothing" for tokens in (only, others))
    return Verdict("doubtful" if near else "different", f"differs: {told}")


def _without(tokens: Sequence[Token], known: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.carries and not any(token.matches(other) for other in known)]


def _some(tokens: Sequence[Token], places: Sequence[int]) -> str:
    """The added words, as far as a line has room."""
    told = " ".join(tokens[place].surface for place in places or range(len(tokens)))
    return repr(told if len(told) <= 60 else told[:57] + "...")
