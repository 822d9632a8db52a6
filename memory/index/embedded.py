"""The index in this process: Qdrant Edge, on a folder of its own.

Edge holds Python's lock through all its work, so a worker thread would free nobody: short calls are made
where they stand (a put takes about 0.1 ms, a search of all four lanes under 1 ms) and long ones are cut into
slices between which the event loop runs. Its write-ahead log survives the process being killed, so a put
does not flush.

Points are compared exactly, among those of the reader's own owners, which the filter finds first: under a
millisecond at a thousand of them. No HNSW graph is kept: building one stops the whole process for longer
than an embedded index of this size can win back (`memory.index.server` has one).
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID, uuid4

from memory.errors import IndexUnavailable
from memory.index import Point, Question, Ranked, Rankings
from memory.index import schema as layout

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, QueryRequest

SLICE = 32
"""Points written or looked up before the event loop runs again: some 3 ms."""

_MARKER = str(UUID(int=0))
"""The point that says which index this is. It has no owner, so no search finds it."""
_PARTS = ("edge_config.json", "segments", "temp_segments", "wal")
"""What Edge keeps in its folder; nothing else there is ever touched."""


class EmbeddedIndex:
    """One folder, one process at a time. Made by `EdgeIndex.open`."""

    def __init__(self, folder: Path, dimension: int, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self._dimension = dimension
        self._shard: EdgeShard | None = None
        self._generation = ""

    @classmethod
    async def open(
        cls, folder: Path, dimension: int, fingerprint: str, *, anew: bool = False
    ) -> "EmbeddedIndex":
        """Opens what is there, or makes it: where nothing is, where it was built with another fingerprint,
        or where `anew` throws away what cannot be read.

        Raises `IndexUnavailable` where another process holds the folder, or where it is damaged."""
        index = cls(folder, dimension, fingerprint)
        with index._translated():
            index._load(anew)
        return index

    @property
    def generation(self) -> str:
        return self._generation

    async def put(self, points: Sequence[Point]) -> None:
        from qdrant_edge import UpdateOperation

        for part in layout.slices(points, SLICE):
            with self._translated():
                self._open_shard.update(UpdateOperation.upsert_points([_engine_point(p) for p in part]))
            await asyncio.sleep(0)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        for part in layout.slices(ids, SLICE):
            with self._translated():
                self._open_shard.update(UpdateOperation.delete_points(list(part)))
            await asyncio.sleep(0)

    async def search(self, question: Question) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        asked = layout.lanes(question)
        if not asked:
            return Rankings()
        requests = _requests(question, asked)
        with self._translated():
            answers = self._open_shard.query_batch(QueryBatchRequest(requests))
        return Rankings(**{lane: _ranked(found) for lane, found in zip(asked, answers, strict=True)})

    async def count(self) -> int:
        from qdrant_edge import CountRequest

        with self._translated():
            return self._open_shard.count(CountRequest(exact=True)) - 1  # the marker

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in layout.slices(ids, SLICE):
            with self._translated():
                records = self._open_shard.retrieve(list(part), False, False)
            found.update(str(record.id) for record in records)
            await asyncio.sleep(0)
        return found

    async def refresh(self) -> str:
        return self._generation

    async def optimise(self) -> None:
        """Flushes, which shortens the log that the next start reads, and gives back the room of removed
        points once they are a fifth of all. The process stands still meanwhile: some 0.2 s for the one,
        0.1 ms a point for the other."""
        with self._translated():
            self._open_shard.flush()
            self._open_shard.optimize()

    async def wipe(self) -> None:
        with self._translated():
            self._remake()

    async def close(self) -> None:
        """Flushes and lets go of the folder. May be called twice."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            with self._translated():
                shard.close()

    def _load(self, anew: bool) -> None:
        from qdrant_edge import EdgeShard

        if any((self.folder / part).exists() for part in _PARTS):
            try:
                self._shard = EdgeShard.load(str(self.folder))
            except BaseException as error:
                if not (anew and _damaged(error)):
                    raise
        marker = self._marker()
        if anew or marker is None or marker["fingerprint"] != self.fingerprint:
            self._remake()
        else:
            self._generation = marker["generation"]

    def _marker(self) -> dict[str, Any] | None:
        if self._shard is None:
            return None
        records = self._shard.retrieve([_MARKER], True, False)
        return records[0].payload if records else None

    def _remake(self) -> None:
        from qdrant_edge import EdgeShard, UpdateOperation
        from qdrant_edge import Point as EnginePoint

        if self._shard is not None:
            self._shard.close()
        for part in _PARTS:
            place = self.folder / part
            place.unlink() if place.is_file() else shutil.rmtree(place, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._shard = EdgeShard.create(str(self.folder), _config(self._dimension))
        for field, use in layout.FIELDS.items():
            self._shard.update(UpdateOperation.create_field_index(field, _field_index(use)))
        generation = str(uuid4())
        about = {"generation": generation, "fingerprint": self.fingerprint}
        # Last: a creation that was cut short has no marker and is begun again.
        self._shard.update(UpdateOperation.upsert_points([EnginePoint(_MARKER, {}, about)]))
        self._generation = generation

    @property
    def _open_shard(self) -> "EdgeShard":
        if self._shard is None:
            raise IndexUnavailable(f"the memory index in {self.folder} is closed")
        return self._shard

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise IndexUnavailable(f"the memory index cannot be kept in {self.folder}: {error}") from error
        except BaseException as error:
            if not _from_engine(error):
                raise
            self._unavailable(error)

    def _unavailable(self, error: BaseException) -> NoReturn:
        if _held(error):
            raise IndexUnavailable(
                f"the memory index in {self.folder} is in use by another hachi process; "
                "stop it, or set QDRANT_URL so that several can share one"
            ) from error
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise IndexUnavailable(
            f"the memory index in {self.folder} cannot be used ({first_line}); "
            "`hachi reindex` builds it anew, nothing that is remembered is lost"
        ) from error


def _from_engine(error: BaseException) -> bool:
    # Edge raises bare `Exception`, and a panic in it arrives as a BaseException that has no importable name.
    return type(error) is Exception or type(error).__name__ == "PanicException"


def _held(error: BaseException) -> bool:
    return "WAL" in str(error) and "WouldBlock" in str(error)


def _damaged(error: BaseException) -> bool:
    return _from_engine(error) and not _held(error)


def _engine_point(point: Point) -> Any:
    from qdrant_edge import Point as EnginePoint

    vectors: dict[str, Any] = {**layout.dense_vectors(point), **layout.sparse_vectors(point)}
    return EnginePoint(point.id, vectors, layout.payload(point))


def _requests(question: Question, asked: dict[str, Any]) -> "list[QueryRequest]":
    from qdrant_edge import IdfParams, Query, QueryRequest, SearchParams

    wanted = _filter(layout.conditions(question))
    # How rare a word is counts among what this reader may read: other people's words neither help nor show.
    among = SearchParams(idf=IdfParams(corpus=_filter([layout.audience(question)])))
    return [
        QueryRequest(
            question.limit,
            query=Query.Nearest(vector, using=lane),
            filter=wanted,
            params=among if lane in layout.SPARSE else None,
            with_payload=["kind"],
        )
        for lane, vector in asked.items()
    ]


def _filter(conditions: Sequence[layout.Condition]) -> "Filter":
    from qdrant_edge import FieldCondition, Filter, MatchAny, RangeFloat

    return Filter(
        must=[
            FieldCondition(c.field, match=MatchAny(list(c.any_of)))
            if c.any_of
            else FieldCondition(c.field, range=RangeFloat(gt=c.above, gte=c.at_least, lt=c.below))
            for c in conditions
        ]
    )


def _ranked(found: Sequence[Any]) -> tuple[Ranked, ...]:
    return tuple(Ranked(str(point.id), point.score, point.payload["kind"]) for point in found)


def _config(dimension: int) -> Any:
    from qdrant_edge import (
        Distance,
        EdgeConfig,
        EdgeOptimizersConfig,
        EdgeSparseVectorParams,
        EdgeVectorParams,
        Memory,
        Modifier,
    )

    return EdgeConfig(
        vectors={lane: EdgeVectorParams(dimension, Distance.Cosine) for lane in layout.DENSE},
        sparse_vectors={lane: EdgeSparseVectorParams(modifier=Modifier.Idf) for lane in layout.SPARSE},
        max_search_threads=1,  # measured faster: one reader has too little to share out
        payload_memory=Memory.Cached,  # read for every hit: cold, first searches take twice as long
        optimizers=EdgeOptimizersConfig(indexing_threshold=1_000_000_000),  # kilobytes: never a graph
    )


def _field_index(use: str) -> Any:
    from qdrant_edge import FloatIndexParams, KeywordIndexParams

    if use == "number":
        return FloatIndexParams(enable_hnsw=False)
    return KeywordIndexParams(is_tenant=use == "tenant", enable_hnsw=use == "tenant")
