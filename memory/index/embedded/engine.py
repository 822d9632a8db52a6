"""Points, questions and errors of an index in the terms of Qdrant Edge."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.index import Point, Question, schema

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard, Filter, QueryRequest

PAYLOAD_MEMORY = "Cached"
"""Payloads are read ahead, since every hit needs one: else the first searches of a process take 20 ms."""


def create(folder: Path, dimension: int) -> "EdgeShard":
    """Make an empty shard in the folder, which must exist."""
    from qdrant_edge import EdgeShard, UpdateOperation

    shard = EdgeShard.create(str(folder), _config(dimension))
    for field, use in schema.FIELDS.items():
        shard.update(UpdateOperation.create_field_index(field, _field_index(use)))
    return shard


def load(folder: Path) -> "EdgeShard":
    from qdrant_edge import EdgeShard

    return EdgeShard.load(str(folder))


def copy_points(old: "EdgeShard", new: "EdgeShard", at_once: int) -> Iterator[None]:
    """Copy every point; yields after each part. Points that are written or removed meanwhile must be in
    both."""
    from qdrant_edge import Point as EnginePoint
    from qdrant_edge import ScrollRequest, UpdateOperation

    after: Any = None
    while True:
        request = ScrollRequest(offset=after, limit=at_once, with_payload=True, with_vector=True)
        records, after = old.scroll(request)
        points = [EnginePoint(record.id, record.vector or {}, record.payload) for record in records]
        if points:
            new.update(UpdateOperation.upsert_points(points))
        yield
        if after is None:
            return


def is_engine_error(error: BaseException) -> bool:
    # Edge raises bare `Exception`; a panic in it is a BaseException whose class cannot be imported.
    return type(error) is Exception or type(error).__name__ == "PanicException"


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def engine_point(point: Point) -> Any:
    from qdrant_edge import Point as EnginePoint

    vectors: dict[str, Any] = {**schema.dense_vectors(point), **schema.sparse_vectors(point)}
    return EnginePoint(point.id, vectors, schema.payload(point))


def request(question: Question, lane: str, vector: Any) -> "QueryRequest":
    from qdrant_edge import IdfParams, Query, QueryRequest, SearchParams

    # The reader's own points decide how rare a word is: a score shows nothing of other people's words.
    own = SearchParams(idf=IdfParams(corpus=matching([schema.audience(question)])))
    return QueryRequest(
        question.limit,
        query=Query.Nearest(vector, using=lane),
        filter=matching(schema.conditions(question)),
        params=own if lane in schema.SPARSE else None,
        with_payload=schema.SHOWN,
    )


def matching(conditions: Sequence[schema.Condition]) -> "Filter":
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
        VectorStorageDatatype,
    )

    # Numbers of two bytes, as in SQL: half the room, and the same is found.
    dense = EdgeVectorParams(dimension, Distance.Cosine, datatype=VectorStorageDatatype.Float16)
    return EdgeConfig(
        vectors=dict.fromkeys(schema.DENSE, dense),
        sparse_vectors={lane: EdgeSparseVectorParams(modifier=Modifier.Idf) for lane in schema.SPARSE},
        max_search_threads=1,  # measured faster: one reader's points are too few to parallelise
        payload_memory=getattr(Memory, PAYLOAD_MEMORY),
        optimizers=EdgeOptimizersConfig(indexing_threshold=1_000_000_000),  # kilobytes: never a graph
        wal_enabled=False,  # an index that was not closed cleanly is filled again
    )


def _field_index(use: str) -> Any:
    from qdrant_edge import FloatIndexParams, KeywordIndexParams

    if use == "number":
        return FloatIndexParams(enable_hnsw=False)
    return KeywordIndexParams(is_tenant=use == "tenant", enable_hnsw=use == "tenant")
