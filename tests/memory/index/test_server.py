"""What holds for the index on a server alone."""

import socket
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
import respx
from qdrant_client import AsyncQdrantClient
from qdrant_server import QdrantServer
from sqlalchemy import update

from memory.errors import IndexUnavailable
from memory.index import Point, Question, fingerprint_of
from memory.index.server import SEARCH_SECONDS, ServerIndex
from memory.index.server import client as client_module
from memory.index.server.index import UNUSED
from memory.process.breaker import FIRST_PAUSE, Breaker
from memory.sql.engine import Database
from memory.sql.tables import index_positions

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection"),
]

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "http://127.0.0.1:6333"
QUESTION = Question(frozenset({"global"}), NOW, [1, 0, 0, 0])


def a_point() -> Point:
    return Point(str(uuid4()), "memory", frozenset({"global"}), "x", [1, 0, 0, 0], NOW)


@pytest.fixture
async def client() -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(":memory:")
    yield client
    await client.close()


Opener = Callable[..., ServerIndex]
SPACE: Any = SimpleNamespace(name="one", dimension=4)


@pytest.fixture
def index_on(client: AsyncQdrantClient, database: Database) -> Callable[..., ServerIndex]:
    def index_on(space: Any = SPACE, family: str = "hachi", database: Any = database) -> ServerIndex:
        return ServerIndex({"here": lambda: client}, space, database, family)

    return index_on


@pytest.fixture
def index_at(database: Database) -> Callable[..., ServerIndex]:
    def index_at(url: str, key: str | None = None, **given: Any) -> ServerIndex:
        return ServerIndex.at(url, key, SPACE, database, **given)

    return index_at


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_a_replica_that_loses_the_race_takes_what_the_other_made(
    client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch, index_on: Opener
) -> None:
    await index_on().put([a_point()])
    really, asked = client.collection_exists, []

    async def not_yet(name: str, **options: Any) -> bool:
        asked.append(name)
        return len(asked) > 1 and await really(name, **options)

    monkeypatch.setattr(client, "collection_exists", not_yet)
    assert await index_on().count() == 1
    assert len(asked) == 2


async def test_only_collections_of_the_same_database_that_nobody_uses_are_dropped(
    client: AsyncQdrantClient, index_on: Opener, database: Database, clock: Any, tmp_path: Path
) -> None:
    first = index_on()
    await first.ensure()
    assert await first.lease()
    await first.release()
    other_database = await Database.open(None, tmp_path / "other")
    others = index_on(family="dog"), index_on(database=other_database)
    for other in others:
        await other.ensure()
    names = {"hachi", "hachi-notes", "other", "hachi-fedcba987654"}
    for name in names:
        await client.create_collection(name, {})
    two: Any = SimpleNamespace(name="two", dimension=4)
    kept = ServerIndex({"here": lambda: client}, two, database, breaker=Breaker("index", clock))
    await kept.ensure()

    async def left() -> set[str]:
        return {found.name for found in (await client.get_collections()).collections}

    points = [a_point(), a_point()]
    for index in (first, kept, *others):
        await index.put(points)
    await kept.remove([points[0].id])
    assert [await index.count() for index in (first, kept, *others)] == [1, 1, 2, 2], "erased in both"
    await kept.compact()
    assert await left() == names | {index.collection for index in (first, kept, *others)}, "others search it"
    await database.run(update(index_positions).values(until=clock.now - 2 * UNUSED))
    await kept.optimise()
    assert await left() == names | {index.collection for index in (kept, *others)}
    await other_database.close()


async def test_the_next_server_is_asked_when_one_is_away(index_at: Opener) -> None:
    async with QdrantServer.running() as one, QdrantServer.running() as other:
        index = index_at(f"http://127.0.0.1:{closed_port()}, {one.url}, {other.url}")
        await index.put([a_point()])
        assert await index.count() == 1
        assert not other.asked
        await one.kill()
        await index.ensure()
        found = await index.search(QUESTION)
        assert (await index.count(), found.dense) == (0, ()), "it holds none of one's"
        await other.kill()
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await index.count()
        await index.close()


async def test_what_a_server_lacks_is_told(index_at: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    async with QdrantServer.running() as qdrant:
        index = index_at(qdrant.url)
        assert await index.advice() == []
        qdrant.version = "1.18.2"
        [too_old] = await index.advice()
        assert too_old.startswith(f"Qdrant 1.18.2 at {qdrant.url} counts how rare a word is")
        monkeypatch.setattr(client_module, "MANY", 0)
        _, in_memory = await index.advice()
        assert "storage.collection.quantization" in in_memory
        await index.close()


async def test_a_collection_that_is_once_in_a_cluster_is_told(client: AsyncQdrantClient) -> None:
    async def status() -> Any:
        return SimpleNamespace(peers={"1": None, "2": None})

    client.cluster_status = status  # type: ignore[method-assign]
    params = SimpleNamespace(replication_factor=1, vectors={"dense": SimpleNamespace(on_disk=True)})
    config = SimpleNamespace(params=params, quantization_config=None)
    assert await client_module.nodes(client) == 2
    [told] = client_module.advice("hachi", config, 5, nodes=2)
    assert "storage.collection.replication_factor to 2" in told
    params.replication_factor = 2
    assert not [*client_module.advice("hachi", config, 5, nodes=2)]


@pytest.mark.parametrize("grpc", [True, False])
async def test_a_server_that_is_down_is_told_with_its_address(grpc: bool, index_at: Opener) -> None:
    port = closed_port()
    url = f"http://127.0.0.1:{port}"
    with pytest.raises(IndexUnavailable) as told:
        await index_at(url, grpc_port=port if grpc else None).ensure()
    assert f"the memory index at {url} does not answer" in str(told.value)
    assert "start Qdrant there, or unset QDRANT_URL" in str(told.value)
    assert "\n" not in str(told.value)


async def test_a_search_awaits_no_hanging_server(index_at: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SEARCH_SECONDS <= 1
    monkeypatch.setattr("memory.index.server.index.SEARCH_SECONDS", 0.3)
    async with QdrantServer.running() as qdrant:
        index = index_at(qdrant.url)
        await index.ensure()
        qdrant.hang()
        began = time.monotonic()
        for opened in (index, index_at(qdrant.url)):
            with pytest.raises(IndexUnavailable, match="no answer in time"):
                await opened.search(QUESTION)
            await opened.close()
        assert time.monotonic() - began < 1.6


@respx.mock
@pytest.mark.parametrize(
    ("status", "words"), [(401, "refuses the key; set QDRANT_API_KEY"), (503, "does not answer")]
)
async def test_a_refusal_is_told_without_the_key(status: int, words: str, index_at: Opener) -> None:
    respx.route(host="127.0.0.1").mock(httpx.Response(status, text="secret-key is wrong"))
    with pytest.raises(IndexUnavailable, match=words) as told:
        await index_at(URL, "secret-key").ensure()
    assert "secret-key" not in str(told.value)


@respx.mock
async def test_a_collection_that_vanished_in_the_middle_is_told(index_at: Opener) -> None:
    respx.route(host="127.0.0.1").mock(httpx.Response(404, text="no collection"))
    index = index_at(URL)
    index._clients[URL] = AsyncQdrantClient(url=URL, check_compatibility=False)
    for attempt in (index.search(QUESTION), index.put([a_point()]), index.remove(["1"]), index.count()):
        with pytest.raises(IndexUnavailable, match="`hachi reindex` rebuilds it"):
            await attempt
    await index.close()


@respx.mock
async def test_a_server_that_did_not_answer_is_tried_again_later(clock: Any, index_at: Opener) -> None:
    asked = respx.route(host="127.0.0.1").mock(side_effect=httpx.ReadTimeout("too long"))
    index = index_at(URL, "key", breaker=Breaker("index", clock, failures=1))
    for _ in range(3):
        with pytest.raises(IndexUnavailable, match="too long"):
            await index.count()
    assert asked.call_count == 1
    clock.now += FIRST_PAUSE
    with pytest.raises(IndexUnavailable):
        await index.count()
    assert asked.call_count == 2


async def test_the_collection_separates_owners_and_is_indexed_by_what_is_filtered(
    client: AsyncQdrantClient, index_on: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, made, fields = client.create_collection, dict[str, Any](), dict[str, Any]()

    async def created(name: str, **given: Any) -> Any:
        made.update(given)
        return await create(name, **given)

    async def indexed(_: str, field: str, use: Any, **__: Any) -> None:
        fields[field] = use

    monkeypatch.setattr(client, "create_collection", created)
    monkeypatch.setattr(client, "create_payload_index", indexed)
    await index_on().ensure()
    assert (made["hnsw_config"].m, made["hnsw_config"].payload_m) == (0, 16)
    assert made["metadata"]["fingerprint"] == fingerprint_of(SPACE)
    assert made["sparse_vectors_config"]["words"].modifier == "idf"
    assert fields.keys() == {"owners", "kind", "subjects", "created_at", "expires_at"}
    assert fields["owners"].is_tenant
