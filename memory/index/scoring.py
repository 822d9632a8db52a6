"""Score the rows of a reader's entries, as Qdrant does: the cosine of vectors, and BM25. Pure.

Words are rare among all that this reader may read, so that a score shows nothing of other people's words.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memory.index import DENSE, LANES, Question, Ranked, Rankings, bm25
from memory.index.entry import KINDS, Entry, Lane

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Scores = NDArray[np.float32]


class Part(NamedTuple):
    """What is read of an entry."""

    entry: Entry
    counted: "Mask"
    """Its rows that are alive and that no entry before it has."""

    def lane(self, name: str) -> Lane:
        return self.entry.window if name.startswith("window") else self.entry.text


def rank(entries: Mapping[str, Entry], questions: Sequence[Question]) -> Rankings:
    """Rank the best rows of each lane, of entries by owner key. The questions have one text and vector."""
    asked = [one for one in questions if one.kinds and one.limit > 0]
    if not entries or not asked:
        return Rankings()
    parts = _parts(entries)
    words = sorted(bm25.query(asked[0].text)) if asked[0].text else []
    eligible = [[part.counted & _meets(part.entry, one) for part in parts] for one in asked]
    found: dict[str, Any] = {}
    for name in LANES:
        if name in DENSE:
            scores = [_by_vector(part.lane(name), part.entry, asked[0].dense) for part in parts]
        else:
            rarities = _rarities(name, parts, words)
            scores = _by_words(name, parts, rarities)
            found.setdefault("rarity", sum(rarities.values()))  # of texts, which come before windows
        hits = [
            hit
            for one, masks in zip(asked, eligible, strict=True)
            for hit in _top(parts, scores, masks, one.limit)
        ]
        found[name] = best(hits)
    return Rankings(**found)


def best(hits: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return the hits, each once, best first."""
    return tuple(sorted({hit.id: hit for hit in hits}.values(), key=lambda hit: -hit.score))


def _parts(entries: Mapping[str, Entry]) -> list[Part]:
    before: set[str] = set()
    parts = []
    for key, entry in entries.items():
        alive = entry.filled["alive"]
        parts.append(Part(entry, alive & entry.owned_by_none_of(before) if before else alive))
        before.add(key)
    return parts


def _meets(entry: Entry, question: Question) -> "Mask":
    """Return which rows a question selects."""
    rows = entry.filled
    meets: Mask = rows["expires"] > question.now.timestamp()
    if len(question.kinds) < len(KINDS) - 1:
        meets &= np.isin(rows["kind"], [KINDS.index(kind) for kind in question.kinds])
    if question.subjects:
        meets &= entry.tagged(question.subjects)
    if question.since:
        meets &= rows["created"] >= question.since.timestamp()
    if question.until:
        meets &= rows["created"] < question.until.timestamp()
    return meets


def _by_vector(lane: Lane, entry: Entry, vector: Any) -> "tuple[Scores, Mask]":
    """Return the cosine of each row, and which rows have one."""
    scores = np.zeros(len(entry.ids), dtype=np.float32)
    if vector is not None and lane.matrix is not None:
        asked = np.asarray(vector, dtype=np.float32)
        length = float(np.linalg.norm(asked))
        if length and lane.matrix.shape[1] == len(asked):
            known = lane.matrix[: len(scores)]
            scores[: len(known)] = np.vecdot(known, asked / length)  # in one thread, unlike `@`, and sooner
            return scores, entry.filled[lane.vector]
    return scores, np.zeros(len(scores), dtype=bool)


def _rarities(name: str, parts: Sequence[Part], words: Iterable[int]) -> dict[int, float]:
    """Return how rare each word is among all texts of the lane."""
    texts = sum(
        int(np.count_nonzero(part.counted & part.entry.filled[part.lane(name).words])) for part in parts
    )
    rarities = {}
    for word in words:
        there = (part.counted[part.lane(name).postings.of(word)[0]] for part in parts)
        having = sum(int(np.count_nonzero(rows)) for rows in there)
        rarities[word] = math.log1p((texts - having + 0.5) / (having + 0.5))
    return rarities


def _by_words(name: str, parts: Sequence[Part], rarities: Mapping[int, float]) -> "list[tuple[Scores, Mask]]":
    """Return the BM25 score of each row of each part, and which rows share a word."""
    scores = [np.zeros(len(part.entry.ids), dtype=np.float32) for part in parts]
    for part, score in zip(parts, scores, strict=True):
        for word, rarity in rarities.items():
            rows, weights = part.lane(name).postings.of(word)
            score[rows] += rarity * weights
    return [(score, score > 0) for score in scores]


def _top(
    parts: Sequence[Part], scores: "Sequence[tuple[Scores, Mask]]", masks: "Sequence[Mask]", limit: int
) -> list[Ranked]:
    """Return the best rows of all parts, at most `limit`."""
    found = list[Ranked]()
    for part, (score, has), mask in zip(parts, scores, masks, strict=True):
        rows = np.flatnonzero(has & mask)
        if len(rows) > limit:
            rows = rows[np.argpartition(-score[rows], limit - 1)[:limit]]
        ids, kinds = part.entry.ids, part.entry.filled["kind"][rows].tolist()
        found += [
            Ranked(ids[row], value, KINDS[kind])
            for row, value, kind in zip(rows.tolist(), score[rows].tolist(), kinds, strict=True)
        ]
    return sorted(found, key=lambda hit: -hit.score)[:limit]
