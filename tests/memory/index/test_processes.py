"""Three processes on one PostgreSQL, each with an index of its own or all with one server."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_server import QdrantServer

from memory.index.embedded.index import EmbeddedIndex
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.server import ServerIndex
from tests.memory.conftest import Stack, StackBuilder
from tests.memory.index.test_sync import each_finds_what_another_wrote

pytestmark = pytest.mark.parametrize("on_database", ["postgresql"], indirect=True)


async def test_three_with_an_index_each_find_at_once_what_another_wrote_or_forgot(
    open_again: Any, build_stack: StackBuilder, bundled: BundledEmbedder, tmp_path: Path
) -> None:
    processes = []
    for number in range(3):
        database = await open_again()
        index = EmbeddedIndex(tmp_path / str(number), bundled, database.number)
        processes.append(await build_stack(database, bundled, index))
        await processes[-1].found("anything")
    await each_finds_what_another_wrote(processes)


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantServer]:
    async with QdrantServer.running() as running:
        yield running


@pytest.fixture
async def processes(
    open_again: Any, build_stack: StackBuilder, bundled: BundledEmbedder, qdrant: QdrantServer
) -> AsyncIterator[list[Stack]]:
    """Three, with one server."""
    made = []
    for _ in range(3):
        database = await open_again()
        made.append(await build_stack(database, bundled, ServerIndex.at(qdrant.url, None, bundled, database)))
        await made[-1].found("anything")
    yield made
    for process in made:
        await process.indexing.stop()
        await process.index.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
async def test_three_with_one_server_find_at_once_what_another_wrote_or_forgot(
    processes: list[Stack], qdrant: QdrantServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.server.index.SEARCH_SECONDS", 30)  # the small server is slow
    await each_finds_what_another_wrote(processes)
    assert len(qdrant.collections) == 1
    monkeypatch.undo()

    one = processes[0]
    qdrant.empty()
    assert await one.found("barn 1") >= {"I painted barn 1"}
    await one.indexing.catch_up()
    assert await one.index.count() == 3
    qdrant.hang()
    began = time.monotonic()
    assert (await one.remember("Anna has a cat")).action == "add"
    assert time.monotonic() - began < 2.5
    assert await one.found("cat") >= {"Anna has a cat"}
    qdrant.go_on()


@pytest.mark.parametrize("filling", [False, True], ids=["while one follows", "while one fills it"])
async def test_a_collection_that_is_lost_and_made_anew_by_another_is_filled_whole(
    filling: bool, processes: list[Stack], qdrant: QdrantServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.index.sync.BATCH", 2)
    (one, other, _), put, pending = processes, ServerIndex.put, list[bool]()

    async def put_and_lose(index: ServerIndex, points: Any) -> None:
        await put(index, points)
        if pending:
            pending.clear()
            qdrant.empty()
            await other.index.ensure()

    monkeypatch.setattr(ServerIndex, "put", put_and_lose)
    for number in range(6):
        await one.remember(f"I painted barn {number}")
    await one.indexing.catch_up()
    pending.append(True)
    if filling:
        qdrant.empty()
        await one.found("barn")
    else:
        await one.remember("I painted barn 6")
    for _ in range(3):
        await one.indexing.try_to_catch_up()
    assert not pending
    assert await one.index.count() == 7 - filling
