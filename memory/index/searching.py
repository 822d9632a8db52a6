"""Searches the index, with the rows that wait for it; while it is away or behind, the newest rows beside it.

`RowSearch` scores as the engine does: the cosine of vectors, and BM25 with the rarity of words among the
reader's own points. A property test compares both.
"""

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memory.errors import IndexUnavailable
from memory.index import Index, Kind, Point, Question, Ranked, Rankings, bm25, schema, vectors
from memory.index.embedders import Embedder
from memory.index.rows import Draft, Rows
from memory.sql.changes import Position

if TYPE_CHECKING:
    from qdrant_edge import SparseVector

NEWEST = 2_000
"""Rows of each kind that are searched without the index, the newest ones. The first search of 2,000 messages
takes some 0.5 s."""
LATELY = 10.0
"""Seconds in which so little changes that a decision may read all of it from the rows."""
AT_A_TIME = 200
"""Texts that are embedded before the event loop gets a turn."""

Words = Mapping[int, float]
Ranking = tuple[Ranked, ...]


class Waiting(NamedTuple):
    """What the index has not followed yet."""

    ids: Mapping[Kind, Collection[str]]
    why: str | None
    """Why the newest rows are to be searched instead."""
    followed: Position
    """Of the log of changes: what comes after it may be in neither."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A point, as it is searched."""

    point: Point
    words: Words
    window_words: Words | None


class Searching:
    def __init__(
        self,
        index: Index,
        waiting: Callable[[bool, frozenset[Kind]], Awaitable[Waiting]],
        unavailable: Callable[[IndexUnavailable], None],
        rows: "RowSearch",
    ) -> None:
        self._index = index
        self._waiting = waiting
        self._unavailable = unavailable
        self._rows = rows
        self._asked: float | None = None
        """When it last asked what waits, by `time.monotonic`."""

    async def search(
        self,
        question: Question,
        *further: Question,
        patient: bool = True,
        waiting: Waiting | None = None,
    ) -> Rankings:
        """The rankings of the index, with those of the rows that wait for it as they are now. If it is away
        or behind, those of the newest rows are merged into what it found, and `without_index` says why. A
        search that is not `patient` neither waits for a server that is about to follow, nor reads the rows
        that wait: whoever asks reads what has changed since the index has `followed`. `further` questions
        select less, and so add what the lists of the first have no room for. What is `waiting` is asked
        first, unless the caller has, or whoever asks reads what has changed anyway: the index may follow."""
        as_it_is = None if waiting or patient else await self._as_it_is()
        if not as_it_is:
            self._asked = time.monotonic()
        ids, why, followed = waiting or as_it_is or await self._waiting(patient, question.kinds)
        found = Rankings()
        waits = {kind: ids[kind] for kind in ids if kind in question.kinds}
        try:
            found = await self._index.search(question, *further)
        except IndexUnavailable as error:
            self._unavailable(error)
            why = str(error)
        rows = Rankings()
        if why:
            rows = await self._rows.newest(question, *further)
        elif waits and patient:
            rows = await self._rows.of(waits, question)
        changed = {id for some in waits.values() for id in some}
        lanes = {name: _merged(getattr(found, name), getattr(rows, name), changed) for name in schema.LANES}
        partial = bool(why) and rows.partial
        return Rankings(**lanes, without_index=why, partial=partial, followed=followed)

    async def _as_it_is(self) -> Waiting | None:
        """An index of this process as far as it has followed, if what waits for it was asked `LATELY`: little
        can have changed since."""
        if self._asked is None or time.monotonic() - self._asked > LATELY or not self._index.in_process:
            return None
        with suppress(IndexUnavailable):  # which is told by whoever asks what waits
            if followed := await self._index.position():
                return Waiting({}, None, followed)
        return None


class RowSearch:
    def __init__(self, rows: Rows, embedder: Embedder) -> None:
        self._rows = rows
        self._embedder = embedder
        self._last: dict[str, Entry] = {}
        """The entries of the last search, by id: the next one often reads the same rows."""

    async def of(self, ids: Mapping[Kind, Collection[str]], question: Question) -> Rankings:
        """Search these rows."""
        return rank(
            await self._entries(await self._rows.readable(ids, question.audience, question.now)), question
        )

    async def newest(self, question: Question, *further: Question) -> Rankings:
        """Search the newest rows."""
        drafts = await self._rows.newest(question.kinds, question.audience, question.now, NEWEST)
        entries = await self._entries(drafts)
        lacking = question.dense is not None and any(entry.point.dense is None for entry in entries)
        most = max(Counter(draft.point.kind for draft in drafts).values(), default=0)
        found = [rank(entries, one) for one in (question, *further)]
        lanes: dict[str, Any] = {
            name: schema.best(hit for one in found for hit in getattr(one, name)) for name in schema.LANES
        }
        return Rankings(**lanes, partial=lacking or most >= NEWEST)

    async def _entries(self, drafts: Sequence[Draft]) -> list[Entry]:
        known = {draft.point.id: entry for draft in drafts if (entry := self._known(draft.point))}
        new = [draft for draft in drafts if draft.point.id not in known]
        for part in schema.slices(new, AT_A_TIME):
            points, _ = await vectors.points(self._rows.database, self._embedder, part)
            known |= {point.id: entry_of(point) for point in points}
        self._last = known
        return list(known.values())

    def _known(self, point: Point) -> Entry | None:
        """The entry of the last search for this row, if it has not changed and has its vector."""
        old = self._last.get(point.id)
        shown = ("text", "window_text", "owners", "expires_at", "subjects", "created_at")
        same = old and all(getattr(old.point, name) == getattr(point, name) for name in shown)
        return old if same and old and old.point.dense is not None else None


def _merged(index: Ranking, rows: Ranking, changed: Collection[str]) -> Ranking:
    """Both, best first. Of rows that have `changed`, what the index says no longer counts."""
    return schema.best([*rows, *(hit for hit in index if hit.id not in changed)])


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
