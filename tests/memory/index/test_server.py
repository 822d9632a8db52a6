"""What holds for the index on a server alone."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
import respx
from qdrant_client import AsyncQdrantClient
from qdrant_server import QdrantServer

from memory.errors import IndexUnavailable
from memory.index import Point, Question, fingerprint_of
from memory.index.server import SEARCH_SECONDS, ServerIndex
from memory.process.breaker import FIRST_PAUSE, Breaker

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection"),
]

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "http://127.0.0.1:6333"


@pytest.fixture
async def client() -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(":memory:")
    yield client
    await client.close()


SPACE: Any = SimpleNamespace(name="one", dimension=4)


async def this_database() -> str:
    return "0123456789ab"


async def another_database() -> str:
    return "ba9876543210"


def index_on(
    client: AsyncQdrantClient, space: Any = SPACE, family: str = "hachi", database: Any = this_database
) -> ServerIndex:
    return ServerIndex(lambda: client, "here", space, database, family)


def index_at(url: str, key: str | None = None, *, grpc_port: int | None = None) -> ServerIndex:
    return ServerIndex.at(url, key, SPACE, this_database, grpc_port=grpc_port)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def test_replicas_that_start_together_agree_on_one_generation(client: AsyncQdrantClient) -> None:
    assert len(set(await asyncio.gather(*(index_on(client).refresh() for _ in range(5))))) == 1


async def test_many_that_need_it_at_once_open_it_once(client: AsyncQdrantClient) -> None:
    connected = []

    def connect() -> AsyncQdrantClient:
        connected.append(client)
        return client

    index = ServerIndex(connect, "here", SPACE, this_database)
    assert connected == []
    await asyncio.gather(*(index.count() for _ in range(10)))
    assert connected == [client]


async def test_a_replica_that_loses_the_race_takes_what_the_other_made(
    client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await index_on(client).refresh()
    really, asked = client.collection_exists, []

    async def not_yet(name: str, **options: Any) -> bool:
        asked.append(name)
        return len(asked) > 1 and await really(name, **options)

    monkeypatch.setattr(client, "collection_exists", not_yet)
    second = index_on(client)
    await second.count()
    assert len(asked) == 2
    assert await second.refresh() == first


async def test_a_wipe_by_another_replica_is_seen_at_the_next_look(client: AsyncQdrantClient) -> None:
    one, other = index_on(client), index_on(client)
    before = await other.refresh()
    await one.wipe()
    assert await other.refresh() == await one.refresh() != before


async def test_a_lost_collection_is_made_again_at_the_next_look(client: AsyncQdrantClient) -> None:
    index = index_on(client)
    before = await index.refresh()
    await client.delete_collection(index.collection)
    assert await index.refresh() not in {"", before}
    assert await index.count() == 0


async def test_only_collections_of_the_same_database_and_family_are_dropped(
    client: AsyncQdrantClient,
) -> None:
    await index_on(client).refresh()
    others = index_on(client, family="dog"), index_on(client, database=another_database)
    for other in others:
        await other.refresh()
    names = {"hachi", "hachi-notes", "other", "hachi-fedcba987654"}
    for name in names:
        await client.create_collection(name, {})
    kept = index_on(client, SimpleNamespace(name="two", dimension=4))
    await kept.refresh()
    left = {found.name for found in (await client.get_collections()).collections}
    assert left == names | {index.collection for index in (kept, *others)}


async def test_collections_of_earlier_versions_are_named(client: AsyncQdrantClient) -> None:
    await index_on(client, database=another_database).refresh()
    for name in ("hachi-fedcba987654", "hachi-knowledge-fedcba987654", "hachi-notes"):
        await client.create_collection(name, {})
    assert await index_on(client).obsolete() == ["hachi-fedcba987654"]
    assert await index_on(client, family="hachi-knowledge").obsolete() == ["hachi-knowledge-fedcba987654"]


@pytest.mark.parametrize("grpc", [True, False])
async def test_a_server_that_is_down_is_told_with_its_address(
    grpc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = closed_port()
    url = f"http://127.0.0.1:{port}"
    with pytest.raises(IndexUnavailable) as told:
        await index_at(url, grpc_port=port if grpc else None).refresh()
    assert f"the memory index at {url} does not answer" in str(told.value)
    assert "start Qdrant there, or unset QDRANT_URL" in str(told.value)
    assert "\n" not in str(told.value)


async def test_a_search_does_not_wait_for_a_server_that_hangs() -> None:
    async with QdrantServer.running() as qdrant:
        index = index_at(qdrant.url)
        await index.refresh()
        qdrant.hang()
        began = time.monotonic()
        for opened in (index, index_at(qdrant.url)):
            with pytest.raises(IndexUnavailable, match="no answer in time"):
                await opened.search(Question(frozenset({"global"}), NOW, [1, 0, 0, 0]))
            await opened.close()
        assert time.monotonic() - began < 2 * SEARCH_SECONDS + 1


async def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(IndexUnavailable, match="QDRANT_URL '::::' cannot be read as an address"):
        await index_at("::::").refresh()


@respx.mock
@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "refuses the key; set QDRANT_API_KEY"), (403, "refuses the key"), (503, "does not answer")],
)
async def test_a_refusal_is_told_without_the_key(status: int, words: str) -> None:
    respx.route(host="127.0.0.1").mock(httpx.Response(status, text="secret-key is wrong"))
    with pytest.raises(IndexUnavailable, match=words) as told:
        await index_at(URL, "secret-key").refresh()
    assert "secret-key" not in str(told.value)


@respx.mock
async def test_a_collection_that_vanished_in_the_middle_is_told() -> None:
    respx.route(host="127.0.0.1").mock(httpx.Response(404, text="no collection"))
    index = index_at(URL)
    index._client = AsyncQdrantClient(url=URL, check_compatibility=False)
    question = Question(frozenset({"global"}), NOW, [1, 0, 0, 0])
    point = Point(str(uuid4()), "memory", frozenset({"global"}), "x", [1, 0, 0, 0], NOW)
    for attempt in (index.search(question), index.put([point]), index.remove([point.id]), index.count()):
        with pytest.raises(IndexUnavailable, match="`hachi reindex` rebuilds it"):
            await attempt
    await index.close()


@respx.mock
async def test_a_server_that_did_not_answer_is_left_alone_for_a_moment_and_then_tried_again(
    clock: Any,
) -> None:
    asked = respx.route(host="127.0.0.1").mock(side_effect=httpx.ReadTimeout("too long"))
    index = ServerIndex.at(URL, "key", SPACE, this_database, breaker=Breaker("index", clock, failures=1))
    for _ in range(3):
        with pytest.raises(IndexUnavailable, match="too long"):
            await index.count()
    assert asked.call_count == 1
    clock.now += FIRST_PAUSE
    with pytest.raises(IndexUnavailable):
        await index.count()
    assert asked.call_count == 2


@respx.mock
async def test_a_creation_that_fails_is_not_taken_for_a_lost_race() -> None:
    respx.get(path__regex=".*/exists").mock(
        httpx.Response(200, json={"result": {"exists": False}, "status": "ok", "time": 0.1})
    )
    respx.put(host="127.0.0.1").mock(httpx.Response(507, text="disk full"))
    with pytest.raises(IndexUnavailable, match="507"):
        await index_at(URL).refresh()


@respx.mock
async def test_the_collection_separates_owners_and_is_indexed_by_what_is_filtered() -> None:
    ok = {"result": True, "status": "ok", "time": 0.1}
    updated = {"result": {"operation_id": 1, "status": "completed"}, "status": "ok", "time": 0.1}
    exists = {"result": {"exists": False}, "status": "ok", "time": 0.1}
    respx.get(path__regex=".*/exists").mock(httpx.Response(200, json=exists))
    made = respx.put(path__regex="/collections/hachi-0123456789ab-[0-9a-f]{12}$").mock(
        httpx.Response(200, json=ok)
    )
    fields = respx.put(path__regex=".*/index").mock(httpx.Response(200, json=updated))
    respx.get(path__regex="/collections/hachi-.*").mock(
        httpx.Response(200, json={"result": COLLECTION, "status": "ok", "time": 0.1})
    )
    respx.get(path="/collections").mock(
        httpx.Response(200, json={"result": {"collections": []}, "status": "ok", "time": 0.1})
    )
    index = index_at(URL)
    assert await index.refresh() == "a-generation"
    await index.close()
    sent = httpx.Response(200, content=made.calls[0].request.content).json()
    assert sent["hnsw_config"] == {"m": 0, "payload_m": 16}
    assert sent["metadata"]["fingerprint"] == fingerprint_of(SPACE)
    assert sent["sparse_vectors"]["words"] == {"modifier": "idf"}
    asked = [httpx.Response(200, content=call.request.content).json() for call in fields.calls]
    assert {a["field_name"] for a in asked} == {"owners", "subjects", "created_at", "expires_at"}
    owners = next(a for a in asked if a["field_name"] == "owners")
    assert owners["field_schema"] == {"type": "keyword", "is_tenant": True}


COLLECTION: dict[str, Any] = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "config": {
        "params": {},
        "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
        "metadata": {"generation": "a-generation"},
    },
    "payload_schema": {"kind": {"data_type": "keyword", "points": 0}},
}
