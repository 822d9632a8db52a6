"""What holds for the connection to a server."""

import socket
import time
from typing import Any

import httpx
import pytest
import respx
from qdrant_server import QdrantServer

from memory.errors import IndexUnavailable
from memory.index import Question
from memory.index.server.index import SEARCH_SECONDS
from memory.process.breaker import FIRST_PAUSE, Breaker
from tests.memory.index.test_index_contract import ANNA, NOW, a_point, server_at

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")

URL = "http://127.0.0.1:6333"
QUESTION = Question(frozenset({ANNA}), NOW, [1, 0, 0, 0])


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_one_that_is_down_is_told_with_its_address() -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(IndexUnavailable) as told:
        await server_at(url, None).count()
    assert f"the memory index at {url} does not answer" in str(told.value)
    assert "start Qdrant there, or unset QDRANT_URL" in str(told.value)
    assert "\n" not in str(told.value)


async def test_a_search_awaits_no_hanging_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SEARCH_SECONDS <= 1
    monkeypatch.setattr("memory.index.server.index.SEARCH_SECONDS", 0.3)
    async with QdrantServer.running() as qdrant:
        index = server_at(qdrant.url, None)
        await index.mark()
        qdrant.hang()
        began = time.monotonic()
        for opened in (index, server_at(qdrant.url, None)):
            with pytest.raises(IndexUnavailable, match="no answer in time"):
                await opened.search(QUESTION)
            await opened.close()
        assert time.monotonic() - began < 1.6


@respx.mock
@pytest.mark.parametrize(
    ("status", "words"), [(401, "refuses the key; set QDRANT_API_KEY"), (503, "does not answer")]
)
async def test_a_refusal_is_told_without_the_key(status: int, words: str) -> None:
    respx.route(host="127.0.0.1").mock(httpx.Response(status, text="secret-key is wrong"))
    with pytest.raises(IndexUnavailable, match=words) as told:
        await server_at(URL, "secret-key").count()
    assert "secret-key" not in str(told.value)


async def test_a_collection_that_vanished_in_the_middle_is_told() -> None:
    async with QdrantServer.running() as qdrant:
        index = server_at(qdrant.url, None)
        await index.mark()
        qdrant.empty()
        for attempt in (index.search(QUESTION), index.put([a_point()]), index.remove(["1"]), index.count()):
            with pytest.raises(IndexUnavailable, match="is filled again"):
                await attempt
        await index.close()


@respx.mock
async def test_one_that_did_not_answer_is_tried_again_later(clock: Any) -> None:
    asked = respx.route(host="127.0.0.1").mock(side_effect=httpx.ReadTimeout("too long"))
    index = server_at(URL, "key", breaker=Breaker("index", clock, failures=1))
    for _ in range(3):
        with pytest.raises(IndexUnavailable, match="too long"):
            await index.count()
    assert asked.call_count == 1
    clock.now += FIRST_PAUSE
    with pytest.raises(IndexUnavailable):
        await index.count()
    assert asked.call_count == 2


async def test_the_collection_separates_owners_and_is_indexed_by_what_is_filtered() -> None:
    async with QdrantServer.running() as qdrant:
        index = server_at(qdrant.url, None)
        await index.mark()
        [made] = qdrant.made.values()
        assert (made["hnsw_config"]["m"], made["hnsw_config"]["payload_m"]) == (0, 16)
        assert made["sparse_vectors"]["words"]["modifier"] == "idf"
        [fields] = qdrant.fields.values()
        assert fields.keys() == {"owners", "kind", "subjects", "created_at", "expires_at"}
        assert fields["owners"]["is_tenant"]
        await index.close()
