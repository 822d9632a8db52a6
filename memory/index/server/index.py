"""The index on a Qdrant server or cluster, which several processes may share.

Each database and fingerprint has a collection, named after both. How far it has followed the log of changes
is in one row of the database, which whoever holds its lease advances. So an index of another embedder is
filled beside the one that other processes still search; those that nobody has used for `UNUSED` are deleted.
What is removed is removed from all of them.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index import Point, Question, Rankings, VectorSpace, fingerprint_of, schema
from memory.index.server import client as wire
from memory.index.server.client import TIMEOUT
from memory.process.breaker import Breaker, CircuitOpen
from memory.sql.changes import ChangeLog, Followed, Position, Unfollowed
from memory.sql.engine import Database

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

log = logging.getLogger("hachi.index")

T = TypeVar("T")

AT_A_TIME = 100
"""Points in one request: some 2 MB at 1,536 dimensions, well under gRPC's limit."""
SEARCH_SECONDS = 1.0
"""Seconds that a search waits for the server, opening it included. With those that it waits for the index to
open (`memory.index.sync`) they are 2."""
UNUSED = timedelta(hours=1)
"""After this time without a change an index is in no process any more, as after a change of the embedder."""
KNOWS_OWNERS = (1, 19)
"""The first version that counts how rare a word is among the points of its reader."""


class ServerIndex:
    """An index in a collection. `servers` make the clients of the servers, by the address that names each in
    errors. The first is asked; where one is away, the next."""

    in_process = False

    def __init__(
        self,
        servers: "Mapping[str, Callable[[], AsyncQdrantClient]]",
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
        self._servers = servers
        self._where = next(iter(servers))
        self._clients: dict[str, AsyncQdrantClient] = {}
        self._breaker = breaker or Breaker("index", failures=1)
        self._opening = asyncio.Lock()

    @property
    def collection(self) -> str:
        fingerprint = fingerprint_of(self._space)
        return self._ours + hashlib.sha256(fingerprint.encode()).hexdigest()[:12]

    @classmethod
    def at(
        cls,
        urls: str,
        api_key: str | None,
        space: VectorSpace,
        database: Database,
        family: str = "hachi",
        *,
        grpc_port: int | None = None,
        breaker: Breaker | None = None,
    ) -> "ServerIndex":
        """The index on the servers at `urls` (``http://host:6333``, several with commas between them): by
        HTTP, or by gRPC at the port given."""
        servers = {
            url.strip(): partial(wire.connect, url.strip(), api_key, grpc_port) for url in urls.split(",")
        }
        return cls(servers, space, database, family, breaker)

    async def put(self, points: Sequence[Point]) -> None:
        for part in schema.slices(points, AT_A_TIME):
            made = [wire.engine_point(point) for point in part]
            await self._there("upsert", made, wait=True)

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove the points, also from this database's collections of other embedders."""
        from qdrant_client import models

        for name in await self._collections() | {self.collection} if ids else ():
            for part in schema.slices(ids, AT_A_TIME):
                gone = models.PointIdsList(points=list(part))
                await self._ask(methodcaller("delete", name, gone, wait=True))

    async def search(self, *questions: Question) -> Rankings:
        searches = schema.searches(questions)
        if not searches:
            return Rankings()
        asked = [wire.request(*search) for search in searches]
        answers = await self._there("query_batch_points", asked, seconds=SEARCH_SECONDS)
        return schema.rankings([lane for _, lane, _ in searches], [found.points for found in answers])

    async def count(self) -> int:
        found: int = (await self._there("count", exact=True)).count
        return found

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, AT_A_TIME):
            records = await self._there("retrieve", list(part), with_payload=False, with_vectors=False)
            found.update(str(record.id) for record in records)
        return found

    async def advice(self) -> list[str]:
        """What whoever runs the servers should know, a line each. Raises IndexUnavailable."""
        version = (await self._ask(lambda client: client.info())).version
        config = (await self._there("get_collection")).config
        nodes = max(len(self._servers), await self._ask(wire.nodes))
        too_old = [] if wire.is_at_least(version, KNOWS_OWNERS) else [self._too_old(version)]
        return [*too_old, *wire.advice(self.collection, config, await self.count(), nodes)]

    async def compact(self) -> bool:
        """Delete the indexes of this database that no process uses. The files of this one are the server's,
        whose optimiser decides when it rewrites them."""
        used = await self._followed.used(UNUSED)
        for name in await self._collections() - {self.collection, *used}:
            await self._ask(methodcaller("delete_collection", name))
        return False

    async def ensure(self) -> None:
        """Make the collection again if somebody deleted it."""
        await self._ask(self._ensure_collection)

    async def position(self) -> Position | None:
        await self._identify()
        return await self._followed.position(self.collection)

    async def lease(self) -> bool:
        await self._identify()
        self._leased = await self._followed.lease(self.collection)
        return self._leased

    async def unfollowed(self, log: ChangeLog, limit: int) -> Unfollowed:
        await self._identify()
        return await log.after(self.collection, limit)

    async def renew(self) -> bool:
        return await self._followed.renew(self.collection)

    async def advance(self, since: Position | None, position: Position, *, release: bool = False) -> bool:
        done = await self._followed.advance(self.collection, since, position, release=release)
        self._leased = done and not release
        return done

    async def release(self) -> None:
        if self._leased:
            self._leased = False
            await self._followed.release(self.collection)

    async def optimise(self) -> None:
        """The server optimises by itself."""
        await self.compact()

    async def wipe(self) -> None:
        await self.ensure()
        if await self.count():  # else it is new, and others may have begun to search it
            await self._there("delete_collection")
            await self.ensure()

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def _collections(self) -> set[str]:
        """The names of all collections of this database."""
        await self._identify()
        found = (await self._ask(lambda client: client.get_collections())).collections
        return {one.name for one in found if one.name.startswith(self._ours)}

    async def _there(self, method: str, *given: Any, seconds: float = TIMEOUT, **named: Any) -> Any:
        """What the client's method answers of the collection."""
        await self._identify()
        return await self._ask(methodcaller(method, self.collection, *given, **named), seconds)

    async def _ask(self, act: "Callable[[AsyncQdrantClient], Awaitable[T]]", seconds: float = TIMEOUT) -> T:
        """What the server answers to `act`, or where it is away, the next one. All may take so many seconds
        together, connecting included."""
        with self._translated():
            for left in reversed(range(len(self._servers))):
                where = self._where
                try:
                    async with asyncio.timeout(seconds / len(self._servers)):
                        return await act(await self._connected(where))
                except wire.faults() as error:
                    if not left or not wire.is_away(error):
                        raise
                    if where == self._where:
                        addresses = [*self._servers]
                        self._where = addresses[(addresses.index(where) + 1) % len(addresses)]
                        log.warning("%s; %s is asked", self._advice(error, where), self._where)
            raise AssertionError("no server was asked")

    async def _connected(self, where: str) -> "AsyncQdrantClient":
        async with self._opening:
            if where not in self._clients:
                self._clients[where] = await self._open(where)
        return self._clients[where]

    async def _identify(self) -> None:
        if not self._ours:
            try:
                self._ours = f"{self._family}-{await self._database.identity()}-"
            except StoreUnavailable as error:
                raise IndexUnavailable(f"the memory index waits for the database: {error}") from error

    async def _open(self, where: str) -> "AsyncQdrantClient":
        await self._identify()
        client = self._servers[where]()
        try:
            version = (await client.info()).version
            if not wire.is_at_least(version, KNOWS_OWNERS):
                log.warning(self._too_old(version))
            await self._ensure_collection(client)
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
                await client.create_payload_index(self.collection, field, wire.field_index(use), wait=True)

    async def _create(self, client: "AsyncQdrantClient") -> None:
        from qdrant_client import models

        # Numbers of two bytes, as in SQL: half the memory, and the same is found.
        dense = models.VectorParams(
            size=self._space.dimension, distance=models.Distance.COSINE, datatype=models.Datatype.FLOAT16
        )
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

    @contextmanager
    def _translated(self) -> Iterator[None]:
        known = wire.faults()

        def blame(error: Exception) -> str | None:
            return self._advice(error) if isinstance(error, known) and wire.is_away(error) else None

        try:
            with self._breaker.calling(blame):
                yield
        except known as error:
            raise IndexUnavailable(self._advice(error)) from error
        except CircuitOpen as error:
            raise IndexUnavailable(str(error)) from error

    def _too_old(self, version: str) -> str:
        return (
            f"Qdrant {version} at {self._where} counts how rare a word is among the points of everybody, so "
            f"that what others say changes the order of what is found: update it to 1.19 or later"
        )

    def _advice(self, error: BaseException, where: str | None = None) -> str:
        where, status, reason = where or self._where, wire.status(error), wire.reason(error)
        if status in (401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"):
            return f"the memory index at {where} refuses the key; set QDRANT_API_KEY to one it knows"
        if status in (404, "NOT_FOUND"):
            return (
                f"the memory index at {where} has lost its collection {self.collection}; "
                "`hachi reindex` rebuilds it, nothing that is remembered is lost"
            )
        return (
            f"the memory index at {where} does not answer ({reason}); start Qdrant there, "
            "or unset QDRANT_URL to keep the index in this process"
        )
