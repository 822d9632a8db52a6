"""Merge the lanes of the index into one order: pure and deterministic.

A lane is a list of ids with raw scores, best first:

    dense, words                  the vector's and the BM25 score of a message, fact or summary
    window_dense, window_words    the same for the exchange around a message (`memory.index.windows`)

Both are searched without the names of those who write. Scores compare within one search only.

Every weight is the middle of a wide plateau on what it was chosen on: LoCoMo's conversations 1 to 3 and
BEAM's chats 1 to 5 (2026-11-29). `docs/recall.md` says how it does on others, and what gained nothing.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from memory.index.bm25 import stems
from memory.records import DEFAULT_IMPORTANCE
from memory.search.time_ranges import Span, time_span
from memory.text import prose
from memory.text.names import called, fold, named, spoken_of

Lanes = Mapping[str, Sequence[tuple[str, float]]]

WEIGHTS = {"dense": 0.5, "words": 0.5, "window_dense": 0.5, "window_words": 1.0}
DEPTH = 50
"""Hits to request from each lane: on LoCoMo 30 loses 0.005, 100 and 200 gain nothing."""

SPEAKER = 0.8
"""Added if the question names the author, or the person whom a fact or another's message is about."""
WHEN = 0.9
"""Added if the question names a time and the statement is from that time."""
TOLD_AFTER = timedelta(days=14)
"""People report events later, so `WHEN` falls to zero over this time after the named one …"""
NAMED_BEFORE = timedelta(days=1)
"""… and over this time before it, because it may have been another day in the speaker's time zone."""
SPEAKS_FOR_ITSELF = 130
"""Up to this many characters a message needs the exchange around it. For a longer one, which states its topic
itself, the exchange counts less, by the square root of the proportion."""
GIVES_WAY = 0.3
"""The share of its score that a very long message loses next to a better one of the same exchange, so that
another exchange comes first. Shorter messages lose a part of it."""
ASKED = 0.6
"""The share of its score that a message loses if it is entirely a question, because that is no answer."""
LONGEST_QUESTION = 80
"""At most this many characters before a question mark count as the question; the rest is a statement."""
LONGEST_FRAGMENT = 20
"""The most characters of a fragment, whatever its words."""

SUMMARY = 0.5
"""Factor for summaries, so that they rank below their sources."""
WEAK = 0.1
"""The least score of a hit …"""
NOTHING = 0.24
"""… and of the best hit, undamped, if the question names nobody. Below it all scores are 0.0."""

FULL_LANE = 50
"""The last hit of a lane of this length counts as no match; in a shorter lane it counts in part."""
REPEAT = 92.0
"""From this similarity of letters (0 to 100) on, the lower of two facts repeats the higher one."""
REPEATED = 0.6
"""Factor for a fact that repeats another: it ranks lower, and is never dropped."""
REPEATS_WITHIN = 30
"""How many of the best facts are compared for repeats."""

ENTRY_OF = {"window_dense": "dense", "window_words": "words"}
"""The lane of a message itself, for each lane of the exchange around it."""
_QUESTION_MARKS = ("?", "؟", "？", "՞")
_QUESTION_MARK = re.compile(f"[{''.join(_QUESTION_MARKS)}]")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?؟？՞。！…\n])")


class Candidate(NamedTuple):
    """A hit to rank. Times are aware."""

    kind: Literal["memory", "message", "summary"]
    text: str
    author: str
    """The author's name, as others see it; empty for a summary."""
    created_at: datetime
    subjects: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    """From 0.0 to 1.0, for memories."""
    uses: int = 0
    last_accessed_at: datetime | None = None
    conversation: str = ""
    seq: int = 0
    """The position of a message; those of one conversation increase."""


def rank(
    question: str,
    lanes: Lanes,
    candidates: Mapping[str, Candidate],
    now: datetime,
    *,
    full: Mapping[str, float] = MappingProxyType({}),
    half_life: timedelta | None = None,
    answered: frozenset[str] = frozenset(),
    tags: frozenset[str] = frozenset(),
) -> list[tuple[str, float]]:
    """Rank all candidates, best first, with scores from 0.0 to 1.0; 0.0 if weak, and for all if the best one
    is.

    `full` has for a lane the score of a text that fits the question wholly. Ids in the lanes that are no
    candidates are ignored. With `half_life`, scores decay with age. In the conversations that were `answered`
    a reply stands between two messages of one exchange. The question names the facts that bear one of the
    `tags`.
    """
    span = time_span(question, now)
    about = _about(question, candidates) | {
        id_ for id_, candidate in candidates.items() if not tags.isdisjoint(candidate.subjects)
    }
    lane_scores = {name: _scaled(lanes.get(name, ()), full.get(name, 0.0)) for name in WEIGHTS}
    by_words_alone = not lanes.get("dense")
    searched = sum(weight for name, weight in WEIGHTS.items() if "words" in name or not by_words_alone)
    most = searched + (SPEAKER if about else 0.0) + (WHEN if span else 0.0)
    newest = sorted(sorted(candidates), key=lambda id_: candidates[id_].created_at, reverse=True)
    best, scores = 0.0, dict.fromkeys(newest, 0.0)
    for id_, candidate in candidates.items():
        then = _said_then(candidate.created_at, span) if span else 0.0
        text = prose(candidate.text)
        share, factor = _exchange_share(candidate, len(text)), _factor(candidate, text)
        named = SPEAKER if id_ in about and share else 0.0
        whole = _matched(id_, candidate, lane_scores, share) + named + WHEN * then
        best = max(best, whole)
        if factor * whole >= WEAK * most:
            factor *= decay(candidate, now, half_life) if half_life else 1.0
            scores[id_] = min(1.0, whole / most * factor)
    if not about and best < NOTHING * most:
        return [(id_, 0.0) for id_ in newest]
    return _repeats_lowered(question, _spread(scores, candidates, answered), candidates)


def asks(text: str) -> bool:
    """Return whether the text ends in a question."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def _asked_share(text: str) -> float:
    """Return the share of the text that is a question."""
    if not _QUESTION_MARK.search(text):  # most texts
        return 0.0
    asked = (min(len(part), LONGEST_QUESTION) for part in _SENTENCE_END.split(text) if asks(part))
    return sum(asked) / len(text)


def _exchange_share(candidate: Candidate, length: int) -> float:
    """Return how much the exchange around a message counts, from 0.0 to 1.0; 1.0 for other kinds."""
    if candidate.kind != "message":
        return 1.0
    if is_fragment(candidate):
        return 0.0
    return math.sqrt(min(1.0, SPEAKS_FOR_ITSELF / max(1, length)))


def _factor(candidate: Candidate, text: str) -> float:
    if candidate.kind == "message":
        return 1.0 - ASKED * _asked_share(text)
    return SUMMARY if candidate.kind == "summary" else 0.9 + 0.2 * candidate.importance


def is_fragment(candidate: Candidate) -> bool:
    """Return whether a message has fewer than two words ("Me", "?", "That*"), and so only its own words
    count."""
    text = candidate.text
    if candidate.kind != "message" or len(text) > LONGEST_FRAGMENT:
        return False
    return sum(len(word) if word[0] >= "\u2e80" else 1 for word in _WORD.findall(text)) < 2


def decay(candidate: Candidate, now: datetime, half_life: timedelta) -> float:
    """Return the factor of age: 1.0 now, halved with each half-life since the last statement or recall. Uses
    prolong the half-life."""
    since = max(candidate.created_at, candidate.last_accessed_at or candidate.created_at)
    age = max(now - since, timedelta(0))
    return float(0.5 ** (age / (half_life * (1.0 + math.log2(1 + candidate.uses)))))


def _matched(
    id_: str, candidate: Candidate, scores: Mapping[str, Mapping[str, float]], share: float
) -> float:
    """Return the weighted score of the lanes. Facts and summaries have no exchange around them."""
    matched = 0.0
    for name, weight in WEIGHTS.items():
        score = scores[name].get(id_, 0.0)
        if name in ENTRY_OF:
            beside = scores[ENTRY_OF[name]].get(id_, 0.0)
            score = share * score if candidate.kind == "message" else score or beside
        matched += weight * score
    return matched


def _scaled(lane: Sequence[tuple[str, float]], full: float) -> dict[str, float]:
    """Scale a lane's scores to 0.0-1.0; 1.0 is `full`, or the best if that is more.

    In a full lane the last hit counts as no match. A short lane contains all matches, so there the bottom of
    the scale is nearer to 0.
    """
    hits = [(id_, score) for id_, score in lane if score > 0.0]
    if not hits:
        return {}
    top = max(full, *(score for _, score in hits))
    bottom = min(score for _, score in hits) * min(1.0, len(hits) / FULL_LANE)
    height = top - bottom
    return {id_: (score - bottom) / height if height > 0.0 else 1.0 for id_, score in hits}


def _about(question: str, candidates: Mapping[str, Candidate]) -> frozenset[str]:
    """Return the candidates about the people whom the question names; none if it names nobody or
    everybody."""
    authors = frozenset(c.author for c in candidates.values() if c.kind != "summary")
    asked = called(question, authors)
    if not asked or (asked == authors and all(c.kind != "memory" for c in candidates.values())):
        return frozenset()
    return frozenset(id_ for id_, candidate in candidates.items() if _is_about(candidate, asked, authors))


def _is_about(candidate: Candidate, asked: frozenset[str], authors: frozenset[str]) -> bool:
    if candidate.kind == "message":
        return candidate.author in asked or spoken_of(candidate.text, asked)
    # "Anna skis", said by Ben, is about Anna; "I ski", said by Ben, is about Ben.
    mentioned = named(" ".join((candidate.text, *candidate.subjects)), authors)
    return not mentioned.isdisjoint(asked) if mentioned else candidate.author in asked


def _said_then(at: datetime, span: Span) -> float:
    """Return 1.0 within the span, falling to 0.0 after it and, faster, before it."""
    start, end = span
    away = (start - at) / NAMED_BEFORE if at < start else max(at - end, timedelta(0)) / TOLD_AFTER
    return max(0.0, 1.0 - away)


def _ordered(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Sort by score, best first. Scores are given newest first, then by id."""
    return sorted(scores.items(), key=itemgetter(1), reverse=True)


def _spread(
    scores: Mapping[str, float], candidates: Mapping[str, Candidate], answered: frozenset[str]
) -> dict[str, float]:
    """Lower the scores of messages next to a better one."""
    final = dict(scores)
    before = set[tuple[str, int]]()
    for id_, score in _ordered(scores):
        one = candidates[id_]
        if one.kind != "message" or not score:
            continue
        reach = 2 if one.conversation in answered else 1
        near = range(one.seq - reach, one.seq + reach + 1)
        if before.isdisjoint((one.conversation, seq) for seq in near if seq != one.seq):
            before.add((one.conversation, one.seq))
        else:
            final[id_] *= 1.0 - GIVES_WAY * (1.0 - _exchange_share(one, len(prose(one.text))))
    return final


def _repeats_lowered(
    question: str, scores: dict[str, float], candidates: Mapping[str, Candidate]
) -> list[tuple[str, float]]:
    """Rank, with lower scores for facts that nearly repeat another one. Of two such facts the one with more
    words of the question ("boat 2", "boat 23") gets the better score, else the newer one."""
    from rapidfuzz import fuzz  # imported here, because a list of traces needs this module without it

    def preference(id_: str) -> tuple[int, datetime]:
        return len(asked & stems(candidates[id_].text)), candidates[id_].created_at

    ranked, apart, asked = _ordered(scores), dict[str, str](), stems(question)
    for id_ in [id_ for id_, score in ranked if score and candidates[id_].kind == "memory"][:REPEATS_WITHIN]:
        text = _plain(candidates[id_].text)
        same = (other for other in apart if fuzz.ratio(text, apart[other], score_cutoff=REPEAT))
        if (better := next(same, None)) is None:
            apart[id_] = text
            continue
        first, second = better, id_
        if preference(id_) > preference(better):
            first, second = id_, better
            del apart[better]
            apart[id_] = text
        scores[first], scores[second] = scores[better], scores[id_] * REPEATED
    return _ordered(scores)


@lru_cache(maxsize=4096)  # the same facts recur
def _plain(text: str) -> str:
    """Return the lower-case text with letters and digits only."""
    return " ".join("".join(c if c.isalnum() else " " for c in fold(text)).split())
