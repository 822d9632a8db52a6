"""The index in this process: Qdrant Edge, in a folder of its own.

Edge holds the GIL while it works, so a worker thread would free nobody. Short calls run on the event loop (a
put takes about 0.1 ms, a search of all four lanes under 1 ms); long ones are cut into slices with a pause for
the loop in between. Edge's write-ahead log survives a kill of the process, so a put does not flush.

Vectors are compared exactly, with those of the reader's own owners only: under a millisecond for a thousand.
There is no HNSW graph, since building one blocks the process for longer than an index of this size can win
back. `memory.index.server` has one.
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from memory.errors import IndexUnavailable
from memory.index import Point, Question, Ranked, Rankings, schema

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, QueryRequest

SLICE = 32
"""Points written or read before the event loop gets a turn: some 3 ms."""

_MARKER = str(UUID(int=0))
"""The id of the point that holds generation and fingerprint. It has no owner, so no search finds it."""
_PARTS = ("edge_config.json", "segments", "temp_segments", "wal")
"""The files and folders that Edge creates in its folder. A rebuild deletes only these."""


class EmbeddedIndex:
    """An index in a folder, which one process can open at a time. Create it with `EmbeddedIndex.open`."""

    def __init__(self, folder: Path, dimension: int, fingerprint: str) -> None:
        self.folder = folder
        self.fingerprint = fingerprint
        self.generation = ""
        self._dimension = dimension
        self._shard: EdgeShard | None = None

    @classmethod
    async def open(
        cls, folder: Path, dimension: int, fingerprint: str, *, rebuild: bool = False
    ) -> "EmbeddedIndex":
        """Open the index, or create it if it is missing or has another fingerprint. `rebuild` always creates
        it, and deletes even unreadable files.

        Raises IndexUnavailable if another process holds the folder, or if the index is damaged.
        """
        index = cls(folder, dimension, fingerprint)
        with index._translated():
            index._load(rebuild)
        return index

    async def put(self, points: Sequence[Point]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(points, SLICE):
            with self._translated():
                self._open_shard.update(UpdateOperation.upsert_points([_engine_point(p) for p in part]))
            await asyncio.sleep(0)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(ids, SLICE):
            with self._translated():
                self._open_shard.update(UpdateOperation.delete_points(list(part)))
            await asyncio.sleep(0)

    async def search(self, question: Question) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        lanes = schema.lanes(question)
        if not lanes:
            return Rankings()
        requests = _requests(question, lanes)
        with self._translated():
            answers = self._open_shard.query_batch(QueryBatchRequest(requests))
        return Rankings(**{lane: _ranked(found) for lane, found in zip(lanes, answers, strict=True)})

    async def count(self) -> int:
        from qdrant_edge import CountRequest

        with self._translated():
            return self._open_shard.count(CountRequest(exact=True)) - 1  # the marker

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, SLICE):
            with self._translated():
                records = self._open_shard.retrieve(list(part), False, False)
            found.update(str(record.id) for record in records)
            await asyncio.sleep(0)
        return found

    async def refresh(self) -> str:
        return self.generation

    async def optimise(self) -> None:
        """Flush, which shortens the log that the next start reads, and free the space of removed points once
        they are a fifth of all. Blocks the process for some 0.2 s, plus 0.1 ms a point."""
        with self._translated():
            self._open_shard.flush()
            self._open_shard.optimize()

    async def wipe(self) -> None:
        with self._translated():
            self._create()

    async def close(self) -> None:
        """Flush and release the folder. May be called twice."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            with self._translated():
                shard.close()

    def _load(self, rebuild: bool) -> None:
        from qdrant_edge import EdgeShard

        if any((self.folder / part).exists() for part in _PARTS):
            try:
                self._shard = EdgeShard.load(str(self.folder))
            except BaseException as error:
                if not (rebuild and _from_engine(error) and not _held(error)):
                    raise
        records = self._shard.retrieve([_MARKER], True, False) if self._shard else []
        marker = records[0].payload if records else None
        if rebuild or marker is None or marker["fingerprint"] != self.fingerprint:
            self._create()
        else:
            self.generation = marker["generation"]

    def _create(self) -> None:
        from qdrant_edge import EdgeShard, UpdateOperation
        from qdrant_edge import Point as EnginePoint

        if self._shard is not None:
            self._shard.close()
        for part in _PARTS:
            place = self.folder / part
            place.unlink() if place.is_file() else shutil.rmtree(place, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._shard = EdgeShard.create(str(self.folder), _config(self._dimension))
        for field, use in schema.FIELDS.items():
            self._shard.update(UpdateOperation.create_field_index(field, _field_index(use)))
        generation = str(uuid4())
        payload = {"generation": generation, "fingerprint": self.fingerprint}
        # Last, so that an index whose creation was interrupted has no marker and is created again.
        self._shard.update(UpdateOperation.upsert_points([EnginePoint(_MARKER, {}, payload)]))
        self.generation = generation

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
            raise IndexUnavailable(self._advice(error)) from error

    def _advice(self, error: BaseException) -> str:
        if _held(error):
            return (
                f"the memory index in {self.folder} is in use by another hachi process; "
                "stop it, or set QDRANT_URL so that several can share one"
            )
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        return (
            f"the memory index in {self.folder} cannot be used ({first_line}); "
            "`hachi reindex` rebuilds it, nothing that is remembered is lost"
        )


def _from_engine(error: BaseException) -> bool:
    # Edge raises bare `Exception`; a panic in it is a BaseException whose class cannot be imported.
    return type(error) is Exception or type(error).__name__ == "PanicException"


def _held(error: BaseException) -> bool:
    return "WAL" in str(error) and "WouldBlock" in str(error)


def _engine_point(point: Point) -> Any:
    from qdrant_edge import Point as EnginePoint

    vectors: dict[str, Any] = {**schema.dense_vectors(point), **schema.sparse_vectors(point)}
    return EnginePoint(point.id, vectors, schema.payload(point))


def _requests(question: Question, lanes: dict[str, Any]) -> "list[QueryRequest]":
    from qdrant_edge import IdfParams, Query, QueryRequest, SearchParams

    wanted = _filter(schema.conditions(question))
    # The reader's own points decide how rare a word is: a score shows nothing of other people's words.
    own = SearchParams(idf=IdfParams(corpus=_filter([schema.audience(question)])))
    return [
        QueryRequest(
            question.limit,
            query=Query.Nearest(vector, using=lane),
            filter=wanted,
            params=own if lane in schema.SPARSE else None,
            with_payload=["kind"],
        )
        for lane, vector in lanes.items()
    ]


def _filter(conditions: Sequence[schema.Condition]) -> "Filter":
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
        vectors={lane: EdgeVectorParams(dimension, Distance.Cosine) for lane in schema.DENSE},
        sparse_vectors={lane: EdgeSparseVectorParams(modifier=Modifier.Idf) for lane in schema.SPARSE},
        max_search_threads=1,  # measured faster: one reader's points are too few to parallelise
        payload_memory=Memory.Cached,  # read for every hit; otherwise first searches take twice as long
        optimizers=EdgeOptimizersConfig(indexing_threshold=1_000_000_000),  # kilobytes: never a graph
    )


def _field_index(use: str) -> Any:
    from qdrant_edge import FloatIndexParams, KeywordIndexParams

    if use == "number":
        return FloatIndexParams(enable_hnsw=False)
    return KeywordIndexParams(is_tenant=use == "tenant", enable_hnsw=use == "tenant")
