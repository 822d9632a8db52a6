"""The index in this process: Qdrant Edge, in a folder of its own.

Edge holds the GIL while it works, so a worker thread would free nobody. Short calls run on the event loop (a
put takes about 0.1 ms, a search of all four lanes under 1 ms); long ones are cut into slices with a pause for
the loop in between. Edge's write-ahead log survives a kill of the process, so a put does not flush.

Vectors are compared exactly, with those of the reader's own owners only: under a millisecond for a thousand.
There is no HNSW graph, since building one blocks the process for longer than an index of this size can win
back. `memory.index.server` has one.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from memory.errors import IndexUnavailable
from memory.index import Point, Question, Rankings, VectorSpace, compacting, fingerprint_of, schema

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, QueryRequest

SLICE = 32
"""Points written or read before the event loop gets a turn: some 3 ms."""

PAYLOAD_MEMORY = "Cached"
"""Payloads are read ahead, since every hit needs one: else the first searches of a process take 20 ms."""

_MARKER = str(UUID(int=0))
"""The id of the point that holds generation and fingerprint. It has no owner, so no search finds it."""


class EmbeddedIndex:
    """An index in a folder, which one process can open at a time."""

    def __init__(self, folder: Path, space: VectorSpace) -> None:
        self.folder = folder
        self._space = space
        self._generation = ""
        self._shard: EdgeShard | None = None
        self._copy: EdgeShard | None = None
        """While `compact` copies: every change is made in it too."""

    async def put(self, points: Sequence[Point]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(points, SLICE):
            with self._opened() as shard:
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.upsert_points([_engine_point(point) for point in part]))
            await asyncio.sleep(0)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(ids, SLICE):
            with self._opened() as shard:
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.delete_points(list(part)))
            await asyncio.sleep(0)

    async def search(self, question: Question) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        lanes = schema.lanes(question)
        if not lanes:
            return Rankings()
        with self._opened() as shard:
            answers = shard.query_batch(QueryBatchRequest(_requests(question, lanes)))
        return Rankings(**{lane: schema.ranked(found) for lane, found in zip(lanes, answers, strict=True)})

    async def count(self) -> int:
        from qdrant_edge import CountRequest

        with self._opened() as shard:
            return shard.count(CountRequest(exact=True)) - 1  # the marker

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, SLICE):
            with self._opened() as shard:
                found.update(str(record.id) for record in shard.retrieve(list(part), False, False))
            await asyncio.sleep(0)
        return found

    async def owned_by(self, owner: str) -> list[str]:
        from qdrant_edge import ScrollRequest

        wanted, found, after = _filter([schema.owned_by(owner)]), list[str](), None
        while True:
            with self._opened() as shard:
                records, after = shard.scroll(ScrollRequest(offset=after, limit=SLICE, filter=wanted))
            found += [str(record.id) for record in records]
            if after is None:
                return found
            await asyncio.sleep(0)

    async def refresh(self) -> str:
        with self._opened():
            return self._generation

    async def optimise(self) -> None:
        """Flush, which shortens the log that the next start reads, and free the space of removed points once
        they are a fifth of all. Blocks the process for some 0.2 s, plus 0.1 ms a point."""
        with self._opened() as shard:
            shard.flush()
            shard.optimize()

    async def compact(self) -> bool:
        """Copy all points into new files, some 0.1 ms a point, while the index stays in use. One that is
        being compacted already is left to that."""
        from qdrant_edge import EdgeShard

        folder = self.folder / compacting.COPYING
        with self._opened() as shard:
            if self._copy is not None:
                return True
            compacting.delete(folder)  # of a process that was killed meanwhile
            folder.mkdir(mode=0o700)
            self._copy = copy = EdgeShard.create(str(folder), _config(self._space.dimension))
            _index_fields(copy)
            pages = compacting.copy_points(shard, copy)
        try:
            while True:
                with self._translated():
                    if self._shard is not shard:
                        raise IndexUnavailable("the memory index was closed while it was compacted")
                    if next(pages, self) is self:
                        break
                await asyncio.sleep(0)
        finally:
            self._copy = None
            copy.close()
        with self._translated():
            self._release()
            folder.rename(self.folder / compacting.COPIED)
            self._load()
        return True

    async def wipe(self) -> None:
        with self._translated():
            try:
                if self._shard is None:
                    self._load()  # fails if another process holds the folder
                self._release()
            except BaseException as error:
                if _held(error) or not _from_engine(error):
                    raise
            self._create()

    async def close(self) -> None:
        with self._translated():
            self._release()

    @contextmanager
    def _opened(self) -> "Iterator[EdgeShard]":
        with self._translated():
            if self._shard is None and not self._load():
                self._create()
            assert self._shard is not None
            yield self._shard

    def _load(self) -> bool:
        """Open the folder's shard. False if there is none, or if it is incomplete or made for vectors of
        another kind."""
        from qdrant_edge import EdgeShard

        compacting.settle(self.folder)
        if not any((self.folder / part).exists() for part in compacting.PARTS):
            return False
        shard = EdgeShard.load(str(self.folder))
        records = shard.retrieve([_MARKER], True, False)
        self._shard = shard
        marker = (records[0].payload if records else None) or {}
        self._generation = marker.get("generation", "")
        return bool(marker.get("fingerprint") == fingerprint_of(self._space))

    def _create(self) -> None:
        from qdrant_edge import EdgeShard, UpdateOperation
        from qdrant_edge import Point as EnginePoint

        self._release()
        for part in (*compacting.PARTS, compacting.COPYING, compacting.COPIED):
            compacting.delete(self.folder / part)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shard = EdgeShard.create(str(self.folder), _config(self._space.dimension))
        _index_fields(shard)
        generation = str(uuid4())
        payload = {"generation": generation, "fingerprint": fingerprint_of(self._space)}
        # Last, so that an index whose creation was interrupted has no marker and is created again.
        shard.update(UpdateOperation.upsert_points([EnginePoint(_MARKER, {}, payload)]))
        self._shard, self._generation = shard, generation

    def _release(self) -> None:
        """Flush and release the folder."""
        shard, self._shard = self._shard, None
        if shard is not None:
            shard.close()

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
        payload_memory=getattr(Memory, PAYLOAD_MEMORY),
        optimizers=EdgeOptimizersConfig(indexing_threshold=1_000_000_000),  # kilobytes: never a graph
    )


def _index_fields(shard: "EdgeShard") -> None:
    from qdrant_edge import UpdateOperation

    for field, use in schema.FIELDS.items():
        shard.update(UpdateOperation.create_field_index(field, _field_index(use)))


def _field_index(use: str) -> Any:
    from qdrant_edge import FloatIndexParams, KeywordIndexParams

    if use == "number":
        return FloatIndexParams(enable_hnsw=False)
    return KeywordIndexParams(is_tenant=use == "tenant", enable_hnsw=use == "tenant")
