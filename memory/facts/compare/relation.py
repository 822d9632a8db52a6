"""How a new statement relates to a known one, decided without any model.

It decides only what words prove in any language: the same words, the same words with an opening clause moved
to the end, or all the words of one statement in their order, followed by a plain addition such as a date, a
place or a companion. Any other word that only one of the two contains keeps them apart, be it a number, a
name, a negation or a synonym. Other pairs that are similar enough to share a topic are `unclear`: both are
kept, unless a model rules otherwise.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from rapidfuzz.distance import Levenshtein

from memory.facts.compare.cues import AND, CONNECTORS, CONTINUING, DATED, EXPLAINING, turning_words
from memory.facts.compare.normalise import normalise
from memory.facts.compare.tokens import Word, emoji_of, words_of
from memory.text.names import fold

Relation = Literal["same", "subsumes", "subsumed", "contradiction", "outdated", "different", "unclear"]

NEAR = 1 / 3
"""Where the threshold for a shared topic lies between `recall`, which any two facts about one person reach,
and `dedupe`. "Lives in Rome" and "moved to Oslo" share little more than their subject."""
NEARLY_THE_SAME_SPELLING = 0.8
"""Normalised Levenshtein similarity above which two texts count as similar, whatever their vectors say."""
SAME_EVENT = timedelta(days=30)
"""If the statements are further apart, the one without the date may be about another event."""
FEWEST_WORDS = 3
"""A statement with fewer words cannot be extended: "Ann runs" is no part of "Ann runs a bakery"."""

_NOT_TOLD = re.compile('[?؟;"«“„\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]')
"""Marks of questions and quotes, and scripts without spaces between words."""


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
    """How the new statement relates to the old one.

    same: it says nothing new. subsumes: it says all that the old one says, and more. subsumed: the old one
    says all that it says, and more. different: both are kept. unclear: both are kept unless a model rules.
    `compare` returns no other. A model's ruling or a person's correction yields a contradiction (the new one
    ends the old one); a ruling may also find the new one outdated (stated before the statement that ended
    it).
    """

    relation: Relation
    reason: str
    alike: bool = field(default=False, compare=False)
    """Whether the two share a topic, as far as vectors and spelling tell."""


def compare(old: Statement, new: Statement, similarity: float, thresholds: Thresholds) -> Verdict:
    """The verdict on a pair. `similarity` is the cosine of their embeddings, calibrated by `thresholds`."""
    if verdict := _proven(old, new):
        return verdict
    near = similarity >= thresholds.recall + NEAR * (thresholds.dedupe - thresholds.recall)
    spelling = Levenshtein.normalized_similarity(normalise(old.text), normalise(new.text))
    near = near or spelling > NEARLY_THE_SAME_SPELLING
    if _other_subjects(old, new):
        return Verdict("different", "about other subjects", near)
    return _apart(words_of(old.text), words_of(new.text), near)


def compare_going_on(old: Statement, new: Statement) -> Verdict | None:
    """The verdict on a pair whose words agree once "still" and its like are left out: the new statement says
    that what the old one says goes on. None if other words differ, or if the new one adds what may hold for
    longer ("and …", "because …")."""
    one, other = (replace(said, text=_without_still(said.text)) for said in (old, new))
    verdict = _proven(one, other)
    if verdict is None or verdict.relation == "different":
        return None
    added = added_words(words_of(one.text), words_of(other.text))
    return None if any(word.key in AND or word.key in EXPLAINING for word in added) else verdict


def _without_still(text: str) -> str:
    joint = "" if _NOT_TOLD.search(text) else " "
    return " ".join(CONTINUING.sub(joint, text).split())


def _proven(old: Statement, new: Statement) -> Verdict | None:
    """The verdict that the words alone prove; None if they prove none."""
    if normalise(old.text) == normalise(new.text):
        return Verdict("same", "the same words")
    if verdict := _same_words(old.text, new.text):
        return verdict
    return None if _other_subjects(old, new) else _with_an_addition(old, new)


def _same_words(old: str, new: str) -> Verdict | None:
    """The verdict if only punctuation, emoji or the order of clauses differ; None if words do."""
    one, other = words_of(old), words_of(new)
    moved = _moved(one, other) or _moved(other, one)
    if not one or not (moved or _keys(one) == _keys(other)):
        return None
    if ("?" in old) != ("?" in new):
        return Verdict("different", "one of them is a question")
    faces = {emoji_of(old), emoji_of(new)}
    if len(faces) == 2 and (() not in faces or len(one) < FEWEST_WORDS):
        return Verdict("different", "differs in an emoji")
    return Verdict("same", "the same words in another order" if moved else "the same words")


def _moved(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether `one` opens with a clause before its only comma that `other` has at its end. The clause's first
    word must lose its capital there: a name that addresses or explains somebody keeps it."""
    marks = [at for at, word in enumerate(one) if at and word.after_mark]
    if len(marks) != 1 or not 2 <= marks[0] <= len(one) - 2 or len(one) != len(other):
        return False
    opening, rest = one[: marks[0]], one[marks[0] :]
    first = other[len(rest)]
    return (
        _keys(other) == [*_keys(rest), *_keys(opening)]
        and (opening[0].capital, first.capital) == (True, False)
        and not any(word.after_mark for word in other[1:])
        and not (opening[-1].number or rest[-1].number or first.number or first.key in AND)
    )


def _other_subjects(old: Statement, new: Statement) -> bool:
    one, other = ({name.casefold() for name in said.subjects} for said in (old, new))
    return bool(one) and bool(other) and one.isdisjoint(other)


def _with_an_addition(old: Statement, new: Statement) -> Verdict | None:
    one, other = words_of(old.text), words_of(new.text)
    more_is_new = len(other) > len(one)
    poor, rich = (one, other) if more_is_new else (other, one)
    if len(poor) < FEWEST_WORDS or any(_NOT_TOLD.search(text) for text in (old.text, new.text)):
        return None
    added = added_words(poor, rich)
    if not added:
        return None
    if more_is_new and new.said_at < old.said_at:
        return Verdict("different", "says more, but was said before")
    if more_is_new:
        return Verdict("subsumes", f"says more: adds {_told(added)}") if _explains(rich, added) else None
    dated = any(word.number for word in added)
    if (dated and new.said_at - old.said_at > SAME_EVENT) or not _only_values(rich, added):
        return None
    return Verdict("subsumed", f"already said, with {_told(added)}") if opens_plainly(added) else None


def added_words(poor: Sequence[Word], rich: Sequence[Word]) -> Sequence[Word]:
    """The words that follow in `rich` after all the words of `poor`. Empty if another word comes between them
    or the addition may reverse the meaning of `poor`."""
    added = rich[len(poor) :]
    if not added or _keys(rich[: len(poor)]) != _keys(poor):
        return ()
    return () if any(may_reverse(word) for word in rich) or _continues_last_value(poor, added) else added


def _explains(rich: Sequence[Word], added: Sequence[Word]) -> bool:
    """Whether a newer addition leaves the original statement valid: it begins like a place, a time, a
    companion or a reason, or has only names and numbers after a comma."""
    if opens_plainly(added) or added[0].key in EXPLAINING:
        return True
    return added[0].after_mark and _only_values(rich, added)


def may_reverse(word: Word) -> bool:
    """Whether the word, or a part of it at an apostrophe, may reverse the meaning of a statement."""
    return word.key.endswith("n't") or not turning_words().isdisjoint(fold(word.key).split("'"))


def _continues_last_value(poor: Sequence[Word], added: Sequence[Word]) -> bool:
    """Whether the addition may continue the last value instead of standing alone ("5" and "5 and a half",
    "Marks" and "Marks and Spencer"), or ends in a particle of the verb ("hört … auf")."""
    last, first, end = poor[-1], added[0], added[-1]
    joined = first.key in AND and (last.number or (last.capital and any(word.capital for word in added[:2])))
    counted = last.number and first.number
    return joined or counted or (len(end.key) < 3 and end.key.isalpha() and not end.capital)


def opens_plainly(added: Sequence[Word]) -> bool:
    first = added[0].key
    if len(added) < 2:
        return False
    return first in CONNECTORS or first in AND or (first in DATED and added[1].number)


def _only_values(rich: Sequence[Word], added: Sequence[Word]) -> bool:
    """Whether the addition consists of numbers, names, units beside a number, and connecting words. Names
    cannot be recognised in a text that is all capitals."""
    capitals_tell = any(word.key[0].isalpha() and not word.capital for word in rich)
    numbers = {at for at, word in enumerate(added) if word.number}
    return all(
        at in numbers
        or {at - 1, at + 1} & numbers
        or (word.capital and capitals_tell)
        or word.key in CONNECTORS
        or word.key in AND
        for at, word in enumerate(added)
    )


def _apart(one: Sequence[Word], other: Sequence[Word], near: bool) -> Verdict:
    names, others = ({_bare(word) for word in words if word.capital} for words in (one, other))
    if names and others and names.isdisjoint(others):
        return Verdict("different", f"about others: {_listed(names)} / {_listed(others)}", near)
    only = [word.text for word in one if word.key not in _keys(other)]
    new = [word.text for word in other if word.key not in _keys(one)]
    return Verdict("unclear" if near else "different", f"differs: {_listed(only)} / {_listed(new)}", near)


def _bare(word: Word) -> str:
    return word.key.removesuffix("'s")


def _keys(words: Sequence[Word]) -> list[str]:
    return [word.key for word in words]


def _listed(words: Sequence[str] | set[str]) -> str:
    return _short(", ".join(sorted(words) if isinstance(words, set) else words) or "nothing")


def _told(words: Sequence[Word]) -> str:
    return repr(_short(" ".join(word.text for word in words)))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
