"""Keep the index on a Qdrant server or cluster, which several processes may share.

Each database and embedder has a collection. One point in it contains a mark, which the database has too
(`memory.index.todo`). A collection that was emptied, or filled from another state of the database, has a
different mark or none.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index import DENSE, SPARSE, Point, Question, Rankings
from memory.index.embedders import Embedder, know_dimension
from memory.index.server import client as wire
from memory.process.breaker import Breaker, CircuitOpen
from memory.sql.engine import Database

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

log = logging.getLogger("hachi.index")

T = TypeVar("T")

LAYOUT = 7
"""Raise it when the payload of points or the hashing of words changes: the index is then filled anew."""
AT_A_TIME = 100
"""Points in one request: some 2 MB at 1,536 dimensions."""
SEARCH_SECONDS = 1.0
"""Seconds that a search waits for the server, including the connection."""
KNOWS_OWNERS = (1, 19)
"""The first version that can count the rarity of a word among the reader's points."""


class ServerIndex:
    """An index in a collection. Every method raises IndexUnavailable if the server cannot be reached."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        embedder: Embedder,
        database: Database,
        family: str = "hachi",
        breaker: Breaker | None = None,
    ) -> None:
        self.where = url
        self._api_key = api_key
        self._embedder = embedder
        self._database = database
        self._family = family
        self._ours = ""
        """The prefix of this database's collections; empty until it is known."""
        self._client: AsyncQdrantClient | None = None
        self._breaker = breaker or Breaker("index", failures=1)
        self._opening = asyncio.Lock()

    async def collection(self) -> str:
        """Return the collection's name, by database and embedder. Also raises EmbedderUnavailable."""
        await know_dimension(self._embedder)
        if not self._ours:
            try:
                self._ours = f"{self._family}-{await self._database.identity()}-"
            except StoreUnavailable as error:
                raise IndexUnavailable(f"the memory index waits for the database: {error}") from error
        fingerprint = f"{self._embedder.name}/{self._embedder.dimension}/layout-{LAYOUT}"
        return self._ours + hashlib.sha256(fingerprint.encode()).hexdigest()[:12]

    async def put(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same ids."""
        made = [wire.point_struct(point) for point in points]
        for at in range(0, len(made), AT_A_TIME):
            await self._there("upsert", made[at : at + AT_A_TIME], wait=True)

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove points. Ignores unknown ids."""
        from qdrant_client import models

        for at in range(0, len(ids), AT_A_TIME):
            gone = models.PointIdsList(points=list(ids[at : at + AT_A_TIME]))
            await self._there("delete", gone, wait=True)

    async def search(self, *questions: Question) -> tuple[str | None, Rankings]:
        """Return the mark, and the hits of all questions, which must have the same text and vector."""
        asked = wire.requests(questions)
        batch = [wire.mark_request(), *(request for _, request in asked)]
        marked, *answers = await self._there("query_batch_points", batch, seconds=SEARCH_SECONDS)
        mark = next((str(point.payload["mark"]) for point in marked.points), None)
        return mark, wire.rankings([lane for lane, _ in asked], answers)

    async def mark(self) -> str | None:
        """Return the mark in the collection, which is created if it is missing."""
        await self._ask(self._ensure)
        [found] = await self._there("query_batch_points", [wire.mark_request()])
        return next((str(point.payload["mark"]) for point in found.points), None)

    async def begin(self, mark: str) -> None:
        """Create the collection anew with only this mark in it, and delete those of other embedders."""
        for one in (await self._ask(methodcaller("get_collections"))).collections:
            if one.name.startswith(self._ours):
                await self._ask(methodcaller("delete_collection", one.name))
        await self._ask(self._ensure)
        await self._there("upsert", [wire.mark_struct(mark)], wait=True)

    async def count(self) -> int:
        """Return the number of points."""
        found: int = (await self._there("count", exact=True)).count
        return max(0, found - 1)  # one is the mark

    async def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of these ids are in the index, whoever owns them: to verify an erasure."""
        found: set[str] = set()
        for at in range(0, len(ids), AT_A_TIME):
            part = list(ids[at : at + AT_A_TIME])
            records = await self._there("retrieve", part, with_payload=False, with_vectors=False)
            found.update(str(record.id) for record in records)
        return found

    async def close(self) -> None:
        """Release the connection. A later call opens it again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _there(self, method: str, *given: Any, seconds: float = wire.TIMEOUT, **named: Any) -> Any:
        """Call a method of the client with the collection's name."""
        name = await self.collection()
        return await self._ask(methodcaller(method, name, *given, **named), seconds)

    async def _ask(
        self, act: "Callable[[AsyncQdrantClient], Awaitable[T]]", seconds: float = wire.TIMEOUT
    ) -> T:
        with self._translated():
            async with asyncio.timeout(seconds):
                return await act(await self._connected())

    async def _connected(self) -> "AsyncQdrantClient":
        async with self._opening:
            if self._client is None:
                client = wire.connect(self.where, self._api_key)
                try:
                    version = (await client.info()).version
                    await self._ensure(client)
                except BaseException:
                    await client.close()
                    raise
                if not wire.is_at_least(version, KNOWS_OWNERS):
                    log.warning(
                        "Qdrant %s at %s counts how rare a word is among everybody's points: what others say "
                        "changes the order of what is found. Update it to 1.19 or later",
                        version,
                        self.where,
                    )
                self._client = client
        return self._client

    async def _ensure(self, client: "AsyncQdrantClient") -> None:
        """Create the collection if it is missing."""
        from qdrant_client import models

        name = await self.collection()
        # Numbers of two bytes, as in SQL: half the memory, with the same hits.
        dense = models.VectorParams(
            size=self._embedder.dimension, distance=models.Distance.COSINE, datatype=models.Datatype.FLOAT16
        )
        if not await client.collection_exists(name):
            try:
                await client.create_collection(
                    name,
                    vectors_config=dict.fromkeys(DENSE, dense),
                    sparse_vectors_config=dict.fromkeys(
                        SPARSE, models.SparseVectorParams(modifier=models.Modifier.IDF)
                    ),
                    # A graph for each owner and no common one, because nobody searches everyone's points.
                    hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                )
            except Exception:
                if not await client.collection_exists(name):
                    raise  # else another process made it first
        made = (await client.get_collection(name)).payload_schema
        for field, use in wire.FIELDS.items():
            if field not in made:  # as after an interrupted creation
                await client.create_payload_index(name, field, wire.field_index(use), wait=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        known = wire.faults()

        def blame(error: Exception) -> str | None:
            is_away = isinstance(error, known) and wire.status(error) not in wire.ANSWERED
            return self._advice(error) if is_away else None

        try:
            with self._breaker.calling(blame):
                yield
        except known as error:
            raise IndexUnavailable(self._advice(error)) from error
        except CircuitOpen as error:
            raise IndexUnavailable(str(error)) from error

    def _advice(self, error: BaseException) -> str:
        if wire.status(error) in (401, 403):
            return f"the memory index at {self.where} refuses the key; set QDRANT_API_KEY to one it knows"
        if wire.status(error) == 404:
            return f"the memory index at {self.where} has lost its collection, which is filled again"
        return (
            f"the memory index at {self.where} does not answer ({wire.reason(error)}); start Qdrant there, "
            "or unset QDRANT_URL to keep the index in this process"
        )
