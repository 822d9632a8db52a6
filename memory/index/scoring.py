"""Score the rows of a reader's entries, as Qdrant does: the cosine of vectors, and BM25. Pure.

The rarity of a word is counted among the reader's rows, so a score does not reveal other people's words.
"""

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
    """An entry, and the rows of it that count."""

    entry: Entry
    counted: "Mask"
    """The rows that are alive and in no earlier entry."""

    def lane(self, name: str) -> Lane:
        return self.entry.window if name.startswith("window") else self.entry.text


def rank(entries: Mapping[str, Entry], questions: Sequence[Question]) -> Rankings:
    """Rank the best rows of each lane. `entries` are by owner key. All questions have one text and vector."""
    asked = [one for one in questions if one.kinds and one.limit > 0]
    parts = _parts(entries)
    if not parts or not asked:
        return Rankings()
    words = np.array(sorted(bm25.query(asked[0].text or "")), dtype=np.uint64)
    selected = [
        (mask, one.limit)
        for one in asked
        if (mask := _joined([part.counted & _meets(part.entry, one) for part in parts])).any()
    ]
    kinds = _joined([part.entry.filled["kind"] for part in parts])
    ids = parts[0].entry.ids if len(parts) == 1 else [id for part in parts for id in part.entry.ids]
    found: dict[str, Any] = {}
    for name in LANES:
        if name in DENSE:
            scores, has = _by_vector(name, parts, asked[0].dense)
        else:
            scores, rarity = _by_words(name, parts, words)
            has = scores > 0
            found.setdefault("rarity", rarity)  # the rarity among texts, which come before windows
        wanted = np.zeros(len(kinds), dtype=bool)
        for mask, limit in selected:
            rows = (has & mask).nonzero()[0]
            if len(rows) > limit:
                rows = rows[(-scores[rows]).argpartition(limit - 1)[:limit]]
            wanted[rows] = True
        rows = np.flatnonzero(wanted)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        hits = zip(rows.tolist(), scores[rows].tolist(), kinds[rows].tolist(), strict=True)
        found[name] = tuple([Ranked(ids[row], score, KINDS[kind]) for row, score, kind in hits])
    return Rankings(**found)


def _joined(arrays: "Sequence[NDArray[Any]]") -> "NDArray[Any]":
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def best(hits: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return the hits, each once, best first."""
    return tuple(sorted({hit.id: hit for hit in hits}.values(), key=lambda hit: -hit.score))


def _parts(entries: Mapping[str, Entry]) -> list[Part]:
    before: set[str] = set()
    parts = []
    for key, entry in entries.items():
        if entry.ids:
            alive = entry.filled["alive"]
            parts.append(Part(entry, alive & entry.owned_by_none_of(before) if before else alive))
        before.add(key)
    return parts


def _meets(entry: Entry, question: Question) -> "Mask":
    """Return which rows a question selects."""
    rows = entry.filled
    meets: Mask = rows["expires"] > question.now.timestamp()
    if len(question.kinds) < len(KINDS) - 1:
        meets &= np.array([kind in question.kinds for kind in KINDS])[rows["kind"]]
    if question.subjects:
        meets &= entry.tagged(question.subjects)
    if question.since:
        meets &= rows["created"] >= question.since.timestamp()
    if question.until:
        meets &= rows["created"] < question.until.timestamp()
    return meets


def _by_vector(name: str, parts: Sequence[Part], vector: Any) -> "tuple[Scores, Mask]":
    """Return the cosine of each row of all parts, and which rows have one."""
    asked = np.asarray(() if vector is None else vector, dtype=np.float32)
    length = float(np.linalg.norm(asked))
    scores, has = [], []
    for part in parts:
        rows, matrix = part.entry.filled, part.lane(name).matrix
        if length and matrix is not None and matrix.shape[1] == len(asked):
            known = np.vecdot(
                matrix[: len(rows)], asked / length
            )  # uses one thread, unlike `@`, and is faster
            scores.append(np.pad(known, (0, len(rows) - len(known))) if len(known) < len(rows) else known)
            has.append(rows[part.lane(name).vector])
        else:
            scores.append(np.zeros(len(rows), dtype=np.float32))
            has.append(np.zeros(len(rows), dtype=bool))
    return _joined(scores), _joined(has)


def _by_words(name: str, parts: Sequence[Part], words: "NDArray[np.uint64]") -> "tuple[Scores, float]":
    """Return the BM25 score of each row of all parts, and that of an average text that has each word once.
    The rarity of a word is counted among all texts of the lane."""
    there = [part.lane(name).postings.of(words) for part in parts]
    texts, having = np.int64(0), np.zeros(len(words))
    for part, (which, rows, _) in zip(parts, there, strict=True):
        texts += np.count_nonzero(part.counted & part.entry.filled[part.lane(name).words])
        having += np.bincount(which[part.counted[rows]], minlength=len(words))
    rarities = np.log1p((texts - having + 0.5) / (having + 0.5))
    scores = [
        np.bincount(rows, rarities[which] * weights, minlength=len(part.entry.ids))
        for part, (which, rows, weights) in zip(parts, there, strict=True)
    ]
    return _joined(scores).astype(np.float32), float(rarities.sum())
