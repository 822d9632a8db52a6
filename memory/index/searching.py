"""Searches the index, with the rows that wait for it; while it is away or behind, the newest rows beside it.

`RowSearch` scores as the engine does: the cosine of vectors, and BM25 with the rarity of words among the
reader's own points. A property test compares both.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index, Point, Question, Ranked, Rankings, bm25, schema
from memory.index.embedders import Embedder
from memory.index.sync.catching_up import CatchingUp
from memory.index.sync.points import Draft, with_vectors

if TYPE_CHECKING:
    from qdrant_edge import SparseVector

NEWEST = 2_000
"""Rows of each kind that are searched without the index, the newest ones. The first search of 2,000 messages
takes some 0.5 s."""
QUICK = frozenset({"bundled"})
"""Embedders that embed thousands of texts in a second and cost nothing. With others, rows are searched by
words alone."""
SLICE = 200
"""Texts that are embedded before the event loop gets a turn."""

Words = Mapping[int, float]
Drafts = Callable[[frozenset[str]], Awaitable[Sequence[Draft]]]
"""Returns the newest rows that readers with these owner keys may read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A point, as it is searched."""

    point: Point
    words: Words
    window_words: Words | None


class Searching:
    def __init__(
        self, index: Index, rows: "RowSearch", catching_up: CatchingUp, waiting: "RowSearch | None" = None
    ) -> None:
        """`waiting` searches the rows that are not in the index yet, such as those of another process."""
        self._index = index
        self._rows = rows
        self._catching_up = catching_up
        self._waiting = waiting

    async def search(self, question: Question) -> Rankings:
        """The rankings of the index, and of the rows that wait for it. If it is away or behind, those of the
        newest rows are merged into what it found, and `without_index` says why."""
        found, why = Rankings(), self._catching_up.behind  # as it is before the index is read
        waiting = await self._waiting.search(question) if self._waiting and not why else Rankings()
        try:
            found = await self._index.search(question)
        except IndexUnavailable as error:
            self._catching_up.wait(error)
            why = str(error)
        rows = await self._rows.search(question) if why else waiting
        return replace(_merged(found, rows, question.limit, why), partial=bool(why) and rows.partial)


class RowSearch:
    def __init__(self, drafts: Drafts, embedder: Embedder) -> None:
        self._drafts = drafts
        self._embedder = embedder
        self._last: dict[str, Entry] = {}
        """The entries of the last search, by id: the next one often reads the same rows."""

    async def search(self, question: Question) -> Rankings:
        drafts = await self._drafts(question.audience)
        known = {draft.point.id: entry for draft in drafts if (entry := self._known(draft.point))}
        new = [draft for draft in drafts if draft.point.id not in known]
        for part in schema.slices(new, SLICE):
            for point in await self._points(part):
                known[point.id] = entry_of(point)
        self._last = known
        by_words_alone = question.dense is not None and self._embedder.name not in QUICK
        most = max(Counter(draft.point.kind for draft in drafts).values(), default=0)
        return replace(rank(list(known.values()), question), partial=by_words_alone or most >= NEWEST)

    async def _points(self, drafts: Sequence[Draft]) -> Sequence[Point]:
        if self._embedder.name in QUICK:
            try:
                return await with_vectors(drafts, self._embedder.embed)
            except EmbedderUnavailable:
                pass
        return [draft.point for draft in drafts]

    def _known(self, point: Point) -> Entry | None:
        """The entry of the last search for this row, if it has not changed."""
        old = self._last.get(point.id)
        shown = ("text", "window_text", "owners", "expires_at", "subjects", "created_at")
        same = old and all(getattr(old.point, name) == getattr(point, name) for name in shown)
        return old if same else None


def _merged(index: Rankings, rows: Rankings, limit: int, why: str | None) -> Rankings:
    lanes: dict[str, Any] = {}
    for name in schema.LANES:
        hits = {hit.id: hit for found in (rows, index) for hit in getattr(found, name)}
        lanes[name] = tuple(sorted(hits.values(), key=lambda hit: -hit.score)[:limit])
    return Rankings(**lanes, without_index=why)


def entry_of(point: Point) -> Entry:
    found = schema.sparse_vectors(point)
    window = None if point.window_text is None else _words(found.get("window_words"))
    return Entry(point, _words(found.get("words")), window)


def rank(entries: Sequence[Entry], question: Question) -> Rankings:
    """The best entries of each lane, as an index with these points returns them."""
    if not schema.lanes(question):
        return Rankings()
    corpus = [entry for entry in entries if not question.audience.isdisjoint(entry.point.owners)]
    found = [entry for entry in corpus if _matches(entry.point, question)]
    asked = set(_words(bm25.query(question.text or "")))
    lanes: dict[str, Iterable[tuple[Point, float]]] = {
        "words": _by_words(asked, corpus, found, lambda entry: entry.words),
        "window_words": _by_words(asked, corpus, found, lambda entry: entry.window_words),
    }
    if question.dense is not None:
        lanes |= {name: _by_vector(question.dense, found, name) for name in schema.DENSE}
    best: dict[str, Any] = {name: _best(hits, question.limit) for name, hits in lanes.items()}
    return Rankings(**best)


def _matches(point: Point, question: Question) -> bool:
    return (
        point.kind in question.kinds
        and (point.expires_at is None or point.expires_at > question.now)
        and (not question.subjects or not question.subjects.isdisjoint(point.subjects))
        and (question.since is None or point.created_at >= question.since)
        and (question.until is None or point.created_at < question.until)
    )


def _by_words(
    asked: set[int], corpus: Sequence[Entry], found: Sequence[Entry], words: Callable[[Entry], Words | None]
) -> Iterable[tuple[Point, float]]:
    texts = [text for entry in corpus if (text := words(entry))]
    having = Counter(word for text in texts for word in asked.intersection(text))
    rarity = {n: math.log1p((len(texts) - count + 0.5) / (count + 0.5)) for n, count in having.items()}
    for entry in found:
        weights = words(entry) or {}
        if shared := asked.intersection(weights):
            yield entry.point, sum(rarity[word] * weights[word] for word in shared)


def _by_vector(dense: Any, found: Sequence[Entry], name: str) -> Iterable[tuple[Point, float]]:
    import numpy as np

    points = [entry.point for entry in found if _has(getattr(entry.point, name))]
    if not points or not (length := float(np.linalg.norm(dense))):
        return []
    vectors = np.array([getattr(point, name) for point in points], dtype=np.float32)
    scores = vectors @ np.asarray(dense, dtype=np.float32) / (np.linalg.norm(vectors, axis=1) * length)
    return zip(points, map(float, scores), strict=True)


def _has(vector: Any) -> bool:
    return vector is not None and any(vector)


def _best(hits: Iterable[tuple[Point, float]], limit: int) -> tuple[Ranked, ...]:
    best = sorted(hits, key=lambda hit: -hit[1])[:limit]
    return tuple(Ranked(point.id, score, point.kind) for point, score in best)


def _words(vector: "SparseVector | None") -> Words:
    return dict(zip(vector.indices, vector.values, strict=True)) if vector else {}
