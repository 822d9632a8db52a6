"""The client of a Qdrant server, and points, questions and errors in its terms."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memory.errors import IndexUnavailable
from memory.index import Point, Question, schema

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_edge import SparseVector

TIMEOUT = 10
"""Seconds that one request may take."""
ANSWERED = frozenset({400, 404, 409, 413, 422, "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS"})
"""Statuses of a server that works, of HTTP and of gRPC."""
MANY = 1_000_000
"""Points from which memory counts: their vectors take 2 bytes a dimension, in two lanes."""


def connect(url: str, api_key: str | None, grpc_port: int | None) -> "AsyncQdrantClient":
    from httpx import Limits
    from qdrant_client import AsyncQdrantClient

    class Client(AsyncQdrantClient):
        def _resolve_query_batch_request(self, requests: Any) -> Any:
            """As they are: the client's own copies them, number by number."""
            return requests

    try:
        return Client(
            url=url,
            api_key=api_key,
            prefer_grpc=grpc_port is not None,
            grpc_port=grpc_port or 6334,  # not asked unless it is preferred
            timeout=TIMEOUT,
            check_compatibility=False,  # the check would block until the server answers
            cloud_inference=True,  # or it looks for texts to embed in what it sends
            limits=Limits(),  # or it opens a connection for each request to this machine
        )
    except ValueError as error:
        raise IndexUnavailable(f"QDRANT_URL {url!r} cannot be read as an address: {error}") from error


def faults() -> tuple[type[Exception], ...]:
    """What the client raises where a server is away or refuses."""
    from grpc import RpcError
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException

    return (ApiException, QdrantException, RpcError, OSError)


def is_away(error: BaseException) -> bool:
    return status(error) not in ANSWERED


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Whether a version such as ``1.19.2`` is that one or later."""
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return found >= wanted


async def nodes(client: "AsyncQdrantClient") -> int:
    """Of how many servers the cluster consists; one where it is none."""
    try:
        status = await client.cluster_status()
    except faults() as error:
        if is_away(error):
            raise
        return 1  # it does not know what a cluster is
    return max(1, len(getattr(status, "peers", ())))


def advice(name: str, config: Any, points: int, nodes: int) -> Iterator[str]:
    """What the settings of a collection lack, on so many servers."""
    if nodes > 1 and (config.params.replication_factor or 1) == 1:
        yield (
            f"{name} is once on {nodes} servers (replication_factor 1): while one is away, every search "
            f"reads the newest rows. Set storage.collection.replication_factor to 2 in Qdrant, and run "
            f"`hachi reindex`"
        )
    in_memory = not any(vectors.on_disk for vectors in config.params.vectors.values())
    if points >= MANY and in_memory and config.quantization_config is None:
        yield (
            f"{name} keeps the whole vectors of {points} points in memory: with "
            f"storage.collection.vectors.on_disk or storage.collection.quantization in Qdrant, and then "
            f"`hachi reindex`, it takes less"
        )


def status(error: BaseException) -> int | str | None:
    """The HTTP status, or the name of the gRPC status."""
    code = getattr(error, "code", None)
    if callable(code):
        return str(getattr(code(), "name", None))
    status: int | None = getattr(error, "status_code", None)
    return status


def reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    details = getattr(error, "details", None)
    text = details() if callable(details) else str(getattr(error, "source", error))
    return ((text or "").strip().splitlines() or [type(error).__name__])[0]


def engine_point(point: Point) -> "models.PointStruct":
    from qdrant_client import models

    vectors: dict[str, Any] = {**schema.dense_vectors(point)}
    vectors |= {lane: _sparse(vector) for lane, vector in schema.sparse_vectors(point).items()}
    return models.PointStruct(id=point.id, vector=vectors, payload=schema.payload(point))


def _sparse(vector: "SparseVector") -> "models.SparseVector":
    from qdrant_client import models

    return models.SparseVector(indices=vector.indices, values=vector.values)


def request(question: Question, lane: str, vector: Any) -> "models.QueryRequest":
    from qdrant_client import models

    # As in `memory.index.embedded.engine`: the reader's own points decide how rare a word is.
    own = models.SearchParams(idf=models.IdfCorpusParams(corpus=_filter([schema.audience(question)])))
    return models.QueryRequest(
        query=models.NearestQuery(nearest=_sparse(vector) if lane in schema.SPARSE else vector),
        using=lane,
        filter=_filter(schema.conditions(question)),
        params=own if lane in schema.SPARSE else None,
        limit=question.limit,
        with_payload=schema.SHOWN,
    )


def _filter(conditions: Sequence[schema.Condition]) -> "models.Filter":
    from qdrant_client import models

    return models.Filter(
        must=[
            models.FieldCondition(key=c.field, match=models.MatchAny(any=list(c.any_of)))
            if c.any_of
            else models.FieldCondition(
                key=c.field, range=models.Range(gt=c.above, gte=c.at_least, lt=c.below)
            )
            for c in conditions
        ]
    )


def field_index(use: str) -> Any:
    from qdrant_client import models

    if use == "number":
        return models.PayloadSchemaType.FLOAT
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=use == "tenant")
