"""Which of what was found comes first: the lanes of the index put together, pure and deterministic.

A lane is a list of ids with raw scores, best first:

    dense, words                  the vector's and the BM25 score of a message, fact or summary
    window_dense, window_words    the same for the exchange around a message (`memory.index.windows`)

Vectors are asked for with `memory.search.names.without_names`, words with the whole question. Every weight is
the middle of a wide plateau on LoCoMo, where halving or doubling it moves evidence recall@10 by 0.016 at
most. The scores of one search compare with each other, and with nothing else.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz

from memory.records import DEFAULT_IMPORTANCE
from memory.search.names import fold, named
from memory.search.time_ranges import Span, time_span

Lanes = Mapping[str, Sequence[tuple[str, float]]]

WEIGHTS = {"dense": 0.5, "words": 0.5, "window_dense": 0.5, "window_words": 1.0}
DEPTH = 50
"""How many hits of each lane to ask the index for: on LoCoMo 30 loses 0.005, 100 and 200 gain nothing."""

SPEAKER = 0.8
"""Added where the question names who said it, or whom a fact is about."""
WHEN = 0.9
"""Added where the question says when, and it was said then."""
TOLD_AFTER = timedelta(days=14)
"""What happened then may be told later: the addition shrinks to nothing over this time."""
ASKS = 0.2
"""Taken from a message that ends in a question: what is looked for is mostly the answer."""

HANDED_ON = 0.5
"""What is left of the score of what the companion made itself, a reply or a summary, so that it comes after
what it was made from."""

FULL_LANE = 50
"""From so many hits on, the last of a lane counts as no match; in a shorter lane it still counts in part."""
REPEAT = 92.0
"""SimilarFacts of two facts' letters (0 to 100) from which the lower one repeats the higher one …"""
REPEATED = 0.6
"""… and what is then left of its score: it makes room, and is never dropped."""
REPEATS_WITHIN = 30
"""Only among so many of the best facts."""

_ENTRY_OF = {"window_dense": "dense", "window_words": "words"}
_QUESTION_MARKS = "?؟？՞"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of something found, when it is ranked. Times are aware."""

    kind: Literal["memory", "message", "summary"]
    text: str
    author: str
    """Who said it, by the name that the others see; nobody (empty) said a summary."""
    created_at: datetime
    subjects: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    """Of memories, 0.0 to 1.0."""
    uses: int = 0
    last_accessed_at: datetime | None = None
    ours: bool = False
    """A reply or a summary of the companion's: it only hands on what people said."""


def rank(
    question: str,
    lanes: Lanes,
    candidates: Mapping[str, Candidate],
    now: datetime,
    *,
    half_life: timedelta | None = None,
) -> list[tuple[str, float]]:
    """All candidates, best first, with scores from 0.0 to 1.0.

    Ids of the lanes that are no candidates (gone, expired, not readable) take no part. Candidates of other
    passes, in no lane, are ranked by what else speaks for them. With `half_life`, scores fade with age.
    """
    span = time_span(question, now)
    about = _about(question, candidates)
    most = sum(WEIGHTS.values()) + (SPEAKER if about else 0.0) + (WHEN if span else 0.0)
    scores = _matched(lanes, candidates)
    for id_, candidate in candidates.items():
        score = scores[id_] + (SPEAKER if id_ in about else 0.0)
        if span:
            score += WHEN * _said_then(candidate.created_at, span)
        if candidate.ours:
            score *= HANDED_ON
        if candidate.kind == "message":
            score -= ASKS if candidate.text.rstrip().endswith(tuple(_QUESTION_MARKS)) else 0.0
        elif candidate.kind == "memory":
            score *= 0.9 + 0.2 * candidate.importance
        fading = decay(candidate, now, half_life) if half_life else 1.0
        scores[id_] = min(1.0, max(0.0, score / most)) * fading
    return _repeats_lowered(_ordered(scores, candidates), candidates)


def decay(candidate: Candidate, now: datetime, half_life: timedelta) -> float:
    """1.0 when said or last recalled, halved with each half-life since.

    Use makes the half-life longer, by ``1 + log2(1 + uses)``: the first uses count most.
    """
    since = max(candidate.created_at, candidate.last_accessed_at or candidate.created_at)
    age = max(now - since, timedelta(0))
    return float(0.5 ** (age / (half_life * (1.0 + math.log2(1 + candidate.uses)))))


def _matched(lanes: Lanes, candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """The weighted sum of the lanes. A fact is its own exchange, and so is a summary: its entry counts for
    the window too."""
    scaled = {name: _scaled(lanes.get(name, ())) for name in WEIGHTS}
    totals = {}
    for id_, candidate in candidates.items():
        total = 0.0
        for name, weight in WEIGHTS.items():
            alone = candidate.kind != "message" and name in _ENTRY_OF and id_ not in scaled[name]
            total += weight * scaled[_ENTRY_OF[name] if alone else name].get(id_, 0.0)
        totals[id_] = total
    return totals


def _scaled(lane: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Raw scores brought to 0.0-1.0. What does not match at all (0 or less) is left out.

    In a full lane the last hit stands for no match. A short lane holds all there is, and its last hit may
    be a good one: there the foot of the scale goes down towards 0.
    """
    hits = [(id_, score) for id_, score in lane if score > 0.0]
    if not hits:
        return {}
    top = max(score for _, score in hits)
    foot = min(score for _, score in hits) * min(1.0, len(hits) / FULL_LANE)
    reach = top - foot
    return {id_: (score - foot) / reach if reach > 0.0 else 1.0 for id_, score in hits}


def _about(question: str, candidates: Mapping[str, Candidate]) -> frozenset[str]:
    """The candidates of whom the question names: by them, or for facts and summaries about them.

    Empty where everybody is named or nobody: then names tell nothing apart.
    """
    authors = {candidate.author for candidate in candidates.values() if candidate.kind != "summary"}
    asked = named(question, authors)
    if not asked or (asked == authors and all(c.kind != "memory" for c in candidates.values())):
        return frozenset()
    return frozenset(id_ for id_, candidate in candidates.items() if _is_about(candidate, asked, authors))


def _is_about(candidate: Candidate, asked: frozenset[str], authors: set[str]) -> bool:
    if candidate.kind == "message":
        return candidate.author in asked
    # "Anna skis", said by Ben, is about Anna; "I ski", said by Ben, is about Ben.
    mentioned = named(" ".join((candidate.text, *candidate.subjects)), authors)
    return not mentioned.isdisjoint(asked) if mentioned else candidate.author in asked


def _said_then(at: datetime, span: Span) -> float:
    """1.0 within the span, shrinking to 0.0 after it, 0.0 before it."""
    start, end = span
    if at < start:
        return 0.0
    return max(0.0, 1.0 - max(at - end, timedelta(0)) / TOLD_AFTER)


def _ordered(scores: Mapping[str, float], candidates: Mapping[str, Candidate]) -> list[tuple[str, float]]:
    """Best first; of equals the newest, then by id, so that the same search always answers the same."""
    return sorted(
        scores.items(), key=lambda hit: (-hit[1], -candidates[hit[0]].created_at.timestamp(), hit[0])
    )


def _repeats_lowered(
    ranked: list[tuple[str, float]], candidates: Mapping[str, Candidate]
) -> list[tuple[str, float]]:
    """Facts that say nearly the same as a better one step back."""
    facts = [id_ for id_, _ in ranked if candidates[id_].kind == "memory"][:REPEATS_WITHIN]
    kept: list[str] = []
    repeats = set()
    for id_ in facts:
        text = _plain(candidates[id_].text)
        if _repeats(text, kept):
            repeats.add(id_)
        else:
            kept.append(text)
    if not repeats:
        return ranked
    return _ordered({i: score * REPEATED if i in repeats else score for i, score in ranked}, candidates)


def _repeats(text: str, kept: Iterable[str]) -> bool:
    return any(fuzz.ratio(text, other, score_cutoff=REPEAT) for other in kept)


@lru_cache(maxsize=4096)  # the same facts come up again and again
def _plain(text: str) -> str:
    """Letters and digits only, without case."""
    return " ".join("".join(c if c.isalnum() else " " for c in fold(text)).split())
