"""Reads and writes a whole index, in a process of its own: ``python -m memory.index.embedded.probe FOLDER``.

Exits with 0 if the index is sound. Otherwise it prints what is wrong, or the engine ends the process.
"""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memory.index import schema
from memory.index.embedded.engine import MARKER, first_line, matching

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

KEYWORDS = ("owners", "kind", "subjects")
PAGE = 256
LONGEST = 1e-2
"""How far the length of a stored vector may be from one."""


def problem(folder: str) -> str | None:
    """What is wrong with the index in the folder. Raises what the engine raises."""
    from qdrant_edge import EdgeShard

    shard = EdgeShard.load(folder)
    if not shard.retrieve([MARKER], False, False):
        return "it was not finished"
    try:
        return _unreadable(shard) or _unsearchable(shard) or _unwritable(shard)
    finally:
        shard.close()


def _unreadable(shard: "EdgeShard") -> str | None:
    """Compare the payloads of all points with what filters find, and check the vectors."""
    from qdrant_edge import CountRequest, ScrollRequest

    values: Counter[tuple[str, Any]] = Counter()
    total, after = 0, None
    while True:
        records, after = shard.scroll(
            ScrollRequest(offset=after, limit=PAGE, with_payload=True, with_vector=True)
        )
        for record in records:
            total += 1
            if str(record.id) == MARKER:
                continue
            payload = record.payload or {}
            if not schema.FIELDS.keys() <= payload.keys():
                return "a payload is lost"
            if not _vectors_are_sound(record.vector or {}):
                return "a vector is damaged"
            values.update((field, one) for field in KEYWORDS for one in _of(payload, field))
        if after is None:
            break
    if shard.count(CountRequest(exact=True)) != total:
        return "points are lost"
    for (field, value), expected in values.items():
        found = shard.count(CountRequest(exact=True, filter=matching([schema.Condition(field, (value,))])))
        if found != expected:
            return f"points are not found by {field}"
    for field in ("created_at", "expires_at"):
        every = matching([schema.Condition(field, above=-schema.NEVER)])
        if shard.count(CountRequest(exact=True, filter=every)) != total - 1:
            return f"points are not found by {field}"
    return None


def _of(payload: dict[str, Any], field: str) -> list[str]:
    value = payload[field]
    return list(dict.fromkeys(value)) if isinstance(value, list) else [value]


def _vectors_are_sound(vectors: Any) -> bool:
    import numpy as np

    for lane, vector in vectors.items():
        if lane in schema.DENSE:
            if not abs(float(np.linalg.norm(vector)) - 1.0) < LONGEST:
                return False
        elif not vector.values or not all(0.0 < value < 100.0 for value in vector.values):
            return False
    return True


def _unsearchable(shard: "EdgeShard") -> str | None:
    """A point is found by its own vectors in each lane."""
    from qdrant_edge import Query, QueryRequest, ScrollRequest

    records, _ = shard.scroll(ScrollRequest(limit=2, with_payload=False, with_vector=True))
    for record in records:
        vectors: Any = record.vector or {}
        for lane, vector in vectors.items():
            if not shard.query(QueryRequest(1, query=Query.Nearest(vector, using=lane))):
                return f"nothing is found in the lane {lane}"
    return None


def _unwritable(shard: "EdgeShard") -> str | None:
    from qdrant_edge import Point, ScrollRequest, UpdateOperation

    id, lane = str(uuid4()), next(iter(schema.DENSE))
    records, _ = shard.scroll(ScrollRequest(limit=2, with_payload=False, with_vector=True))
    found: list[Any] = [record.vector for record in records if record.vector and lane in record.vector]
    vectors: Any = {lane: found[0][lane]} if found else {}
    shard.update(UpdateOperation.upsert_points([Point(id, vectors, {})]))
    there = bool(shard.retrieve([id], False, False))
    versions = _versions(shard, lane, vectors[lane]) if vectors else {}
    shard.update(UpdateOperation.delete_points([id]))
    shard.flush()
    if not there:
        return "a point that was written is not there"
    # Edge passes over a change that is older than the point's version.
    return "points take no change" if max(versions.values(), default=0) > versions.get(id, 0) else None


def _versions(shard: "EdgeShard", lane: str, vector: Any) -> dict[str, int]:
    """By the id of each point with a vector in this lane, which change it was written by."""
    from qdrant_edge import CountRequest, Query, QueryRequest

    every = QueryRequest(shard.count(CountRequest(exact=True)), query=Query.Nearest(vector, using=lane))
    return {str(point.id): point.version for point in shard.query(every)}


if __name__ == "__main__":
    try:
        found = problem(sys.argv[1])
    except BaseException as error:  # a panic of the engine is no Exception
        found = first_line(error)
    if found:
        print(found)
        sys.exit(1)
