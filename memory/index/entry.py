"""The searchable rows of one owner key: matrices of vectors, and for each word the rows that have it.

A changed row is added anew and its old version is marked dead; `worn` tells when too many are dead. Times are
seconds since 1970; a row that never expires has infinity.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.index import Kind, Point, bm25
from memory.index.bm25 import AVERAGE_WINDOW, AVERAGE_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS: tuple[Kind, ...] = ("memory", "message", "summary", "chunk")
_ROW = np.dtype(
    [("alive", "?"), ("kind", "i1"), ("owners", "i4"), ("created", "f8"), ("expires", "f8")]
    + [(f"{lane}_{what}", "?") for lane in ("text", "window") for what in ("words", "vector")]
)
ROW_BYTES = 400
"""A generous estimate of the bytes of a row without its vectors and words."""
_BITS, _MASK = np.uint64(32), np.uint64(2**32 - 1)


class Postings:
    """The words of a lane with the rows that have them, as sorted pairs: a word in the upper half of a number
    and a row in the lower. Parts of similar size are merged, so there are only a few."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.uint64], NDArray[np.float32]]] = []
        """The pairs, and the weight of the word in the row; the largest part first."""

    def add(self, first: int, texts: Sequence[tuple[Sequence[int], int]], average: int) -> None:
        """Add the `bm25.tokens` of these rows from the first one on."""
        sizes = [len(words) for words, _ in texts]
        pairs = np.fromiter(chain.from_iterable(words for words, _ in texts), np.uint64, sum(sizes)) << _BITS
        pairs |= np.repeat(np.arange(len(texts), dtype=np.uint64), sizes)
        pairs, counts = np.unique(pairs, return_counts=True)
        lengths = np.array([length for _, length in texts])[pairs & _MASK]
        weights = bm25.weight(counts, lengths, average).astype(np.float32)
        pairs += np.uint64(first)
        while self._parts and len(self._parts[-1][0]) <= 2 * len(pairs):
            before = self._parts.pop()
            pairs, weights = np.concatenate([before[0], pairs]), np.concatenate([before[1], weights])
            order = np.argsort(pairs, kind="stable")  # a stable sort merges sorted runs quickly
            pairs, weights = pairs[order], weights[order]
        self._parts.append((pairs, weights))

    def of(self, words: "NDArray[np.uint64]") -> "tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]":
        """Return three arrays for each match: the word's position, the row, and the word's weight in it."""
        found = [(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.float32))]
        for pairs, weights in self._parts:
            first = words << _BITS
            begins, ends = np.searchsorted(pairs, first), np.searchsorted(pairs, first | _MASK, side="right")
            counts = ends - begins
            at = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            rows = (pairs[at] & _MASK).astype(np.intp)
            found.append((np.repeat(np.arange(len(words)), counts), rows, weights[at]))
        which, rows, weighs = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return which, rows, weighs

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for part in self._parts for array in part)


class Lane:
    """The words and vectors of the rows' texts, or of their windows."""

    def __init__(self, name: str, average: int) -> None:
        self.words, self.vector = f"{name}_words", f"{name}_vector"
        """The columns that tell whether a row has words, and a vector."""
        self.average = average
        self.postings = Postings()
        self.matrix: NDArray[np.float32] | None = None

    def put(
        self,
        first: int,
        rows: "NDArray[Any]",
        texts: Sequence[tuple[Sequence[int], int]],
        vectors: Sequence[Any],
    ) -> None:
        """Add the `bm25.tokens` of these rows from the first one on, and their vectors or None."""
        self.postings.add(first, texts, self.average)
        end = first + len(texts)
        rows[self.words][first:end] = [bool(words) for words, _ in texts]
        known = [at for at, vector in enumerate(vectors) if vector is not None]
        if known:
            values = np.array([vectors[at] for at in known], dtype=np.float32)
            lengths = np.linalg.norm(values, axis=1, keepdims=True)
            if self.matrix is None or len(self.matrix) < len(rows):
                before, self.matrix = self.matrix, np.zeros((len(rows), values.shape[1]), dtype=np.float32)
                if before is not None and before.shape[1] == values.shape[1]:
                    self.matrix[: len(before)] = before
            at = first + np.array(known)
            self.matrix[at] = values / np.where(lengths, lengths, 1)
            rows[self.vector][at] = lengths[:, 0] > 0  # the zeros of a blank text are near to nothing


class Entry:
    def __init__(self) -> None:
        self.text, self.window = Lane("text", AVERAGE_WORDS), Lane("window", AVERAGE_WINDOW)
        self.ids: list[str] = []
        """The id of each row, dead ones included."""
        self.rows = np.zeros(16, dtype=_ROW)
        self._row_of: dict[str, int] = {}
        self._owners: dict[frozenset[str], int] = {}
        """The number of each set of owners."""
        self._tags: dict[str, list[int]] = {}
        self.heard: set[str] = set()
        """The places in which the person's messages were sent."""

    def put(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same ids."""
        self.remove([point.id for point in points])
        if len(self.ids) + len(points) > len(self.rows):
            room = max(len(self.ids) + len(points), 2 * len(self.rows))
            self.rows = np.concatenate([self.rows, np.zeros(room - len(self.rows), dtype=_ROW)])
        first = len(self.ids)
        self.ids += [point.id for point in points]
        new = self.filled[first:]
        new["kind"] = [KINDS.index(point.kind) for point in points]
        new["owners"] = [self._owners.setdefault(point.owners, len(self._owners)) for point in points]
        new["created"] = [point.created_at.timestamp() for point in points]
        new["expires"] = [point.expires_at.timestamp() if point.expires_at else np.inf for point in points]
        new["alive"] = True
        texts = [*(point.text for point in points), *(point.window_text for point in points)]
        read = bm25.tokens_of(texts)
        self.text.put(first, self.rows, read[: len(points)], [point.dense for point in points])
        if any(texts[len(points) :]):
            self.window.put(first, self.rows, read[len(points) :], [point.window_dense for point in points])
        for row, point in enumerate(points, first):
            self._row_of[point.id] = row
            for tag in point.subjects:
                self._tags.setdefault(tag, []).append(row)
            if point.kind == "message":
                self.heard.update(key for key in point.owners if key.startswith("place:"))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove points. Ignores unknown ids."""
        for id in ids:
            if (row := self._row_of.pop(id, None)) is not None:
                self.rows[row]["alive"] = False

    def __contains__(self, id: str) -> bool:
        return id in self._row_of

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def filled(self) -> "NDArray[Any]":
        """Return the rows, dead ones included."""
        return self.rows[: len(self.ids)]

    @property
    def worn(self) -> bool:
        """Return whether most rows are dead."""
        return len(self.ids) > 2 * len(self) + 1_000

    @property
    def ends(self) -> float:
        """Return when the first row expires."""
        rows = self.filled
        return float(rows["expires"][rows["alive"]].min(initial=np.inf))

    def expired(self, at: float) -> list[str]:
        rows = self.filled
        return [self.ids[row] for row in np.flatnonzero(rows["alive"] & (rows["expires"] <= at))]

    @property
    def bytes(self) -> int:
        lanes = (self.text, self.window)
        return len(self.ids) * ROW_BYTES + sum(
            lane.postings.bytes + (0 if lane.matrix is None else lane.matrix.nbytes) for lane in lanes
        )

    def owned_by_none_of(self, keys: Collection[str]) -> "NDArray[Any]":
        """Return a mask of the rows that have no owner among these keys."""
        apart = np.array([owners.isdisjoint(keys) for owners in self._owners], dtype=bool)
        return apart[self.filled["owners"]] if len(apart) else np.zeros(0, dtype=bool)

    def tagged(self, tags: Collection[str]) -> "NDArray[Any]":
        found = np.zeros(len(self.ids), dtype=bool)
        found[[row for tag in tags for row in self._tags.get(tag, ())]] = True
        return found
