"""The index on a Qdrant server, which several processes may share.

Each fingerprint has a collection, named after it, with the generation in its metadata. The server creates a
collection only once, so replicas that start together agree on one generation. Opening deletes the collections
of other fingerprints, because they may still hold erased data.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memory.errors import IndexUnavailable
from memory.index import Point, Question, Ranked, Rankings, schema

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_edge import SparseVector

SLICE = 100
"""Points in one request: some 2 MB at 1,536 dimensions, well under gRPC's limit."""
TIMEOUT = 10
"""Seconds that one request may take."""


class ServerIndex:
    """An index in one collection. Create it with `ServerIndex.open`, or `ServerIndex.over` a client."""

    def __init__(self, client: "AsyncQdrantClient", where: str, collection: str, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.collection = f"{collection}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"
        self._family = re.compile(re.escape(collection) + "-[0-9a-f]{12}")
        self._client = client
        self._where = where
        self._dimension = 0
        self.generation = ""

    @classmethod
    async def open(
        cls,
        url: str,
        api_key: str | None,
        dimension: int,
        fingerprint: str,
        *,
        collection: str = "hachi",
        prefer_grpc: bool = True,
    ) -> "ServerIndex":
        """Connect to `url` (``http://host:6333``). Uses gRPC on its usual port 6334, unless `prefer_grpc` is
        False.

        Raises IndexUnavailable if the server does not answer within 10 seconds, or refuses the key.
        """
        from qdrant_client import AsyncQdrantClient

        try:
            client = AsyncQdrantClient(
                url=url,
                api_key=api_key,
                prefer_grpc=prefer_grpc,
                timeout=TIMEOUT,
                check_compatibility=False,  # the check would block until the server answers
            )
        except ValueError as error:
            raise IndexUnavailable(f"QDRANT_URL {url!r} cannot be read as an address: {error}") from error
        try:
            return await cls.over(client, url, dimension, fingerprint, collection=collection)
        except BaseException:
            await client.close()
            raise

    @classmethod
    async def over(
        cls,
        client: "AsyncQdrantClient",
        where: str,
        dimension: int,
        fingerprint: str,
        *,
        collection: str = "hachi",
    ) -> "ServerIndex":
        """Open the index on an open client, which `close` closes. `where` names the server in errors."""
        index = cls(client, where, collection, fingerprint)
        index._dimension = dimension
        await index.refresh()
        with index._translated():
            await index._drop_others()
        return index

    async def put(self, points: Sequence[Point]) -> None:
        for part in schema.slices(points, SLICE):
            with self._translated():
                await self._client.upsert(self.collection, [_engine_point(p) for p in part], wait=True)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_client import models

        for part in schema.slices(ids, SLICE):
            with self._translated():
                chosen = models.PointIdsList(points=list(part))
                await self._client.delete(self.collection, chosen, wait=True)

    async def search(self, question: Question) -> Rankings:
        lanes = schema.lanes(question)
        if not lanes:
            return Rankings()
        requests = _requests(question, lanes)
        with self._translated():
            answers = await self._client.query_batch_points(self.collection, requests)
        return Rankings(**{lane: _ranked(found.points) for lane, found in zip(lanes, answers, strict=True)})

    async def count(self) -> int:
        with self._translated():
            return (await self._client.count(self.collection, exact=True)).count

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, SLICE):
            with self._translated():
                records = await self._client.retrieve(
                    self.collection, list(part), with_payload=False, with_vectors=False
                )
            found.update(str(record.id) for record in records)
        return found

    async def refresh(self) -> str:
        """Create the collection again if a replica or the server deleted it. Returns its generation."""
        with self._translated():
            if not await self._client.collection_exists(self.collection):
                await self._create()
            info = await self._client.get_collection(self.collection)
            await self._index_fields(set(info.payload_schema))
        self.generation = str((info.config.metadata or {}).get("generation", ""))
        return self.generation

    async def optimise(self) -> None:
        """Does nothing: the server optimises by itself."""

    async def wipe(self) -> None:
        with self._translated():
            await self._client.delete_collection(self.collection)
        await self.refresh()

    async def close(self) -> None:
        await self._client.close()

    async def _create(self) -> None:
        from qdrant_client import models

        dense = models.VectorParams(size=self._dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await self._client.create_collection(
                self.collection,
                vectors_config=dict.fromkeys(schema.DENSE, dense),
                sparse_vectors_config=dict.fromkeys(schema.SPARSE, sparse),
                # A graph for each owner and none over all: nobody searches everyone's points.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                metadata={"generation": str(uuid4()), "fingerprint": self.fingerprint},
            )
        except Exception:
            if not await self._client.collection_exists(self.collection):
                raise  # else another replica created it first

    async def _index_fields(self, indexed: set[str]) -> None:
        """Index the payload fields that are not indexed yet, as after an interrupted creation."""
        for field, use in schema.FIELDS.items():
            if field not in indexed:
                await self._client.create_payload_index(self.collection, field, _field_index(use), wait=True)

    async def _drop_others(self) -> None:
        for found in (await self._client.get_collections()).collections:
            if found.name != self.collection and self._family.fullmatch(found.name):
                await self._client.delete_collection(found.name)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from grpc import RpcError
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException

        try:
            yield
        except (ApiException, QdrantException, RpcError, OSError) as error:
            raise IndexUnavailable(self._advice(error)) from error

    def _advice(self, error: BaseException) -> str:
        status, reason = _status(error), _reason(error)
        if status in (401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"):
            return f"the memory index at {self._where} refuses the key; set QDRANT_API_KEY to one it knows"
        if status in (404, "NOT_FOUND"):
            return (
                f"the memory index at {self._where} has lost its collection {self.collection}; "
                "`hachi reindex` rebuilds it, nothing that is remembered is lost"
            )
        return (
            f"the memory index at {self._where} does not answer ({reason}); start Qdrant there, "
            "or unset QDRANT_URL to keep the index in this process"
        )


def _status(error: BaseException) -> int | str | None:
    """The HTTP status, or the name of the gRPC status."""
    code = getattr(error, "code", None)
    if callable(code):
        return str(getattr(code(), "name", None))
    status: int | None = getattr(error, "status_code", None)
    return status


def _reason(error: BaseException) -> str:
    details = getattr(error, "details", None)
    text = details() if callable(details) else str(getattr(error, "source", error))
    return ((text or "").strip().splitlines() or [type(error).__name__])[0]


def _engine_point(point: Point) -> "models.PointStruct":
    from qdrant_client import models

    vectors: dict[str, Any] = {**schema.dense_vectors(point)}
    vectors |= {lane: _sparse(vector) for lane, vector in schema.sparse_vectors(point).items()}
    return models.PointStruct(id=point.id, vector=vectors, payload=schema.payload(point))


def _sparse(vector: "SparseVector") -> "models.SparseVector":
    from qdrant_client import models

    return models.SparseVector(indices=vector.indices, values=vector.values)


def _requests(question: Question, lanes: dict[str, Any]) -> "list[models.QueryRequest]":
    from qdrant_client import models

    wanted = _filter(schema.conditions(question))
    # As in `memory.index.embedded`: the reader's own points decide how rare a word is.
    own = models.SearchParams(idf=models.IdfCorpusParams(corpus=_filter([schema.audience(question)])))
    return [
        models.QueryRequest(
            query=_sparse(vector) if lane in schema.SPARSE else vector,
            using=lane,
            filter=wanted,
            params=own if lane in schema.SPARSE else None,
            limit=question.limit,
            with_payload=["kind"],
        )
        for lane, vector in lanes.items()
    ]


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


def _ranked(found: Sequence[Any]) -> tuple[Ranked, ...]:
    return tuple(Ranked(str(point.id), point.score, point.payload["kind"]) for point in found)


def _field_index(use: str) -> Any:
    from qdrant_client import models

    if use == "number":
        return models.PayloadSchemaType.FLOAT
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=use == "tenant")
