"""The index on a Qdrant server, which several processes may share.

Each database and fingerprint has a collection, named after both. How far it has followed the log of changes
is in one row of the database, which whoever holds its lease advances. Opening deletes the same database's
collections of other fingerprints, because they may still hold erased data.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index import Point, Question, Rankings, VectorSpace, fingerprint_of, schema
from memory.process.breaker import Breaker, CircuitOpen
from memory.sql.changes import ChangeLog, Followed, Position, Unfollowed
from memory.sql.engine import Database

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_edge import SparseVector

AT_A_TIME = 100
"""Points in one request: some 2 MB at 1,536 dimensions, well under gRPC's limit."""
TIMEOUT = 10
"""Seconds that one request may take."""
SEARCH_SECONDS = 1.0
"""Seconds that a search waits for the server, opening it included. With those that it waits for the index to
open (`memory.index.sync`) they are 2."""
ANSWERED = frozenset({400, 404, 409, 413, 422, "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS"})
"""Statuses of a server that works, of HTTP and of gRPC."""


class ServerIndex:
    """An index in a collection. `connect` makes the client, and `where` names the server in errors."""

    in_process = False

    def __init__(
        self,
        connect: "Callable[[], AsyncQdrantClient]",
        where: str,
        space: VectorSpace,
        database: Database,
        family: str = "hachi",
        breaker: Breaker | None = None,
    ) -> None:
        self._followed = Followed(database, holder=str(uuid4()))
        self._leased = False
        self._database = database
        self._family = family
        self._ours = ""
        """How the names of this database's collections begin. Known once it is open."""
        self._space = space
        self._connect = connect
        self._where = where
        self._client: AsyncQdrantClient | None = None
        self._breaker = breaker or Breaker("index", failures=1)
        self._opening = asyncio.Lock()

    @property
    def collection(self) -> str:
        fingerprint = fingerprint_of(self._space)
        return self._ours + hashlib.sha256(fingerprint.encode()).hexdigest()[:12]

    @classmethod
    def at(
        cls,
        url: str,
        api_key: str | None,
        space: VectorSpace,
        database: Database,
        family: str = "hachi",
        *,
        grpc_port: int | None = None,
        breaker: Breaker | None = None,
    ) -> "ServerIndex":
        """The index on the server at `url` (``http://host:6333``): by HTTP, or by gRPC at the port given."""

        def connect() -> "AsyncQdrantClient":
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

        return cls(connect, url, space, database, family, breaker)

    async def put(self, points: Sequence[Point]) -> None:
        for part in schema.slices(points, AT_A_TIME):
            async with self._opened() as client:
                await client.upsert(self.collection, [_engine_point(p) for p in part], wait=True)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_client import models

        for part in schema.slices(ids, AT_A_TIME):
            async with self._opened() as client:
                await client.delete(self.collection, models.PointIdsList(points=list(part)), wait=True)

    async def search(self, *questions: Question) -> Rankings:
        searches = schema.searches(questions)
        if not searches:
            return Rankings()
        async with self._opened(SEARCH_SECONDS) as client:
            answers = await client.query_batch_points(self.collection, [_request(*one) for one in searches])
        return schema.rankings([lane for _, lane, _ in searches], [found.points for found in answers])

    async def count(self) -> int:
        async with self._opened() as client:
            return (await client.count(self.collection, exact=True)).count

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, AT_A_TIME):
            async with self._opened() as client:
                records = await client.retrieve(
                    self.collection, list(part), with_payload=False, with_vectors=False
                )
            found.update(str(record.id) for record in records)
        return found

    async def compact(self) -> bool:
        """Does nothing: the files are the server's, whose optimiser decides when it rewrites them."""
        return False

    async def ensure(self) -> None:
        """Make the collection again if somebody deleted it."""
        async with self._opened() as client:
            await self._ensure_collection(client)

    async def position(self) -> Position | None:
        await self._identify()
        return await self._followed.position(self.collection)

    async def lease(self, now: datetime) -> bool:
        await self._identify()
        self._leased = await self._followed.lease(self.collection, now)
        return self._leased

    async def unfollowed(self, log: ChangeLog, limit: int) -> Unfollowed:
        await self._identify()
        return await log.after(self.collection, limit)

    async def advance(self, position: Position, *, release: bool = False) -> bool:
        done = await self._followed.advance(self.collection, position, release=release)
        self._leased = done and not release
        return done

    async def release(self) -> None:
        if self._leased:
            self._leased = False
            await self._followed.release(self.collection)

    async def optimise(self) -> None:
        """Does nothing: the server optimises by itself."""

    async def wipe(self) -> None:
        async with self._opened() as client:
            await client.delete_collection(self.collection)
            await self._ensure_collection(client)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _opened(self, seconds: float = TIMEOUT) -> "AsyncIterator[AsyncQdrantClient]":
        """The client, connected and with its collection on the first call. Opening and the block together may
        take so many seconds."""
        with self._translated():
            async with asyncio.timeout(seconds):
                async with self._opening:
                    if self._client is None:
                        self._client = await self._open()
                yield self._client

    async def _identify(self) -> None:
        if not self._ours:
            try:
                self._ours = f"{self._family}-{await self._database.identity()}-"
            except StoreUnavailable as error:
                raise IndexUnavailable(f"the memory index waits for the database: {error}") from error

    async def _open(self) -> "AsyncQdrantClient":
        await self._identify()
        client = self._connect()
        try:
            await self._ensure_collection(client)
            await self._drop_others(client)
        except BaseException:
            await client.close()
            raise
        return client

    async def _ensure_collection(self, client: "AsyncQdrantClient") -> None:
        """Create the collection if it is missing; it is then to be filled."""
        if not await client.collection_exists(self.collection):
            await self._followed.forget(self.collection)
            await self._create(client)
        info = await client.get_collection(self.collection)
        for field, use in schema.FIELDS.items():
            if field not in info.payload_schema:  # as after an interrupted creation
                await client.create_payload_index(self.collection, field, _field_index(use), wait=True)

    async def _create(self, client: "AsyncQdrantClient") -> None:
        from qdrant_client import models

        dense = models.VectorParams(size=self._space.dimension, distance=models.Distance.COSINE)
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await client.create_collection(
                self.collection,
                vectors_config=dict.fromkeys(schema.DENSE, dense),
                sparse_vectors_config=dict.fromkeys(schema.SPARSE, sparse),
                # A graph for each owner and none over all: nobody searches everyone's points.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                metadata={"fingerprint": fingerprint_of(self._space)},
            )
        except Exception:
            if not await client.collection_exists(self.collection):
                raise  # else another replica created it first

    async def _drop_others(self, client: "AsyncQdrantClient") -> None:
        names = [found.name for found in (await client.get_collections()).collections]
        documents = self._ours.replace(f"{self._family}-", f"{self._family}-knowledge-", 1)  # of old
        for name in names:
            if name.startswith((self._ours, documents)) and name != self.collection:
                await client.delete_collection(name)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from grpc import RpcError
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException

        known = (ApiException, QdrantException, RpcError, OSError)

        def blame(error: Exception) -> str | None:
            away = isinstance(error, known) and _status(error) not in ANSWERED
            return self._advice(error) if away else None

        try:
            with self._breaker.calling(blame):
                yield
        except known as error:
            raise IndexUnavailable(self._advice(error)) from error
        except CircuitOpen as error:
            raise IndexUnavailable(str(error)) from error

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
    if isinstance(error, TimeoutError):
        return "no answer in time"
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


def _request(question: Question, lane: str, vector: Any) -> "models.QueryRequest":
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


def _field_index(use: str) -> Any:
    from qdrant_client import models

    if use == "number":
        return models.PayloadSchemaType.FLOAT
    return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=use == "tenant")
