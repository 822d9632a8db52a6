"""An index on a server comes to show what is in the database, whoever does it, and however far they got."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from qdrant_server import QdrantServer
from sqlalchemy import select, update

from memory.audience import Audience
from memory.index import LANES, Question
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.server.index import ServerIndex
from memory.process.breaker import Breaker
from memory.sql.tables import index_marks, index_todo
from tests.memory.conftest import Stack, StackBuilder, on_both

ANNA = Audience.of("anna")


@pytest.fixture
async def qdrant(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[QdrantServer]:
    monkeypatch.setattr("memory.index.server.index.SEARCH_SECONDS", 30)
    async with QdrantServer.running() as running:
        yield running


Opener = Callable[[], Any]


@pytest.fixture
async def process(
    qdrant: QdrantServer, open_again: Any, build_stack: StackBuilder, bundled: BundledEmbedder, clock: Any
) -> Opener:
    """Opens another process that uses the server. None does anything in the background."""

    async def opened() -> Stack:
        database = await open_again()
        server = ServerIndex(qdrant.url, None, bundled, database, breaker=Breaker("index", clock, 1))
        made = await build_stack(database, bundled, server)
        made.indexing.wake = lambda: None  # type: ignore[method-assign]
        return made

    return opened


async def on_the_server(stack: Stack) -> dict[str, dict[str, float]]:
    """What the server alone finds for Anna, by lane and id, with the scores."""
    assert stack.indexing.server is not None
    _, found = await stack.indexing.server.search(await everything(stack))
    return {lane: {hit.id: round(hit.score, 2) for hit in getattr(found, lane)} for lane in LANES}


async def in_process(stack: Stack) -> dict[str, dict[str, float]]:
    found = await stack.indexing.engine.search(await everything(stack))
    return {lane: {hit.id: round(hit.score, 2) for hit in getattr(found, lane)} for lane in LANES}


async def everything(stack: Stack) -> Question:
    [vector] = await stack.embedder.embed(["cat dog bird"])
    return Question(ANNA.keys, stack.clock.now, vector, "cat dog bird", limit=500)


async def end_claims(stack: Stack) -> None:
    for table in (index_todo, index_marks):
        await stack.database.run(update(table).values(until=stack.clock.now.replace(year=2000)))


async def live(stack: Stack, days: int = 6) -> None:
    """Facts and messages that come, change and go."""
    for day in range(days):
        await stack.receive(f"my cat saw a bird on day {day}")
        await stack.receive(f"day {day}: a bird? not a dog?", role="assistant")
        await stack.remember(f"Anna's dog {day} has a bone")
        gone = await stack.remember(f"Anna's cat {day} sleeps")
        await stack.delete(next(m for m in await stack.memories("anna") if m.id == gone.id), "anna")


class Killed(BaseException):
    pass


def kill_at(server: Any, call: int, *, done: bool) -> None:
    """Let the process die at its so manieth call of the server, before or after that has done it."""
    ask, calls = server._ask, iter(range(1_000))

    async def asked(*given: Any, **named: Any) -> Any:
        number = next(calls)
        if number == call and not done:
            raise Killed
        found = await ask(*given, **named)
        if number == call:
            raise Killed
        return found

    server._ask = asked


@on_both
@pytest.mark.parametrize("done", [True, False])
async def test_two_fill_it_at_once_and_one_is_killed_at_any_moment(process: Opener, done: bool) -> None:
    for call in range(7):
        one, other = await process(), await process()
        await live(one, days=1)
        await end_claims(one)
        kill_at(one.indexing.server, call, done=done)
        anew = {"anew": call % 3 == 0}
        await asyncio.gather(
            one.indexing.catch_up(**anew), other.indexing.catch_up(), live(other, 1), return_exceptions=True
        )
        await end_claims(other)
        await other.indexing.catch_up()
        await end_claims(other)
        await other.indexing.catch_up()
        assert await on_the_server(other) == await in_process(other)
        assert await other.indexing.pending() == 0
        assert await other.indexing.server.count() == await other.indexing.rows()


async def test_an_older_state_that_is_put_last_does_not_stay(process: Opener) -> None:
    one, other = await process(), await process()
    await one.receive("a cat")
    await one.indexing.catch_up()
    fact = await one.remember("Anna has a dog")
    put, server = one.indexing.server.put, one.indexing.server

    async def late(points: Any) -> None:
        server.put = put
        [memory] = await other.memories("anna")
        await other.delete(memory, "anna")
        await other.indexing.catch_up()
        await put(points)

    server.put = late
    await one.indexing.catch_up()
    assert fact.id not in (await on_the_server(one))["words"]


@pytest.mark.parametrize("how", ["emptied", "of another state"])
async def test_an_emptied_or_foreign_collection_is_noticed_and_filled(
    process: Opener, qdrant: QdrantServer, how: str
) -> None:
    stack = await process()
    await live(stack, 2)
    await stack.indexing.catch_up()
    right = await on_the_server(stack)
    assert right == await in_process(stack)
    if how == "emptied":
        qdrant.empty()
    else:
        await stack.database.run(update(index_marks).values(mark="restored"))
    await end_claims(stack)
    assert await stack.found("cat"), "it is searched in the process meanwhile"
    await stack.indexing.catch_up()
    assert await on_the_server(stack) == right


async def test_what_waits_for_the_server_is_found_and_what_is_gone_is_not(process: Opener) -> None:
    stack = await process()
    await stack.remember("Anna has a cat")
    await stack.indexing.catch_up()
    forgotten, new = await stack.the_memory("anna"), await stack.remember("Anna has a dog")
    await stack.delete(forgotten, "anna")
    assert await stack.indexing.pending() > 0
    assert await stack.found("cat or dog") == {"Anna has a dog"}
    found = await stack.indexing.search(await everything(stack))
    assert [hit.id for hit in found.words] == [new.id]


async def test_what_an_expired_fact_had_replaced_is_found_as_soon_as_that_has_expired(
    process: Opener,
) -> None:
    stack = await process()
    inside = await stack.remember("Anna's cat sleeps inside")
    await stack.remember("Anna's cat sleeps outside", replaces=inside.id, ttl="1d")
    await stack.indexing.catch_up()
    stack.clock.advance(days=2)
    assert await stack.found("cat") == {"Anna's cat sleeps inside"}
    await stack.expire()
    await stack.indexing.catch_up()
    assert [*(await on_the_server(stack))["words"]] == [inside.id]


async def test_a_server_that_is_away_is_told_once_and_comes_back(
    process: Opener, qdrant: QdrantServer, caplog: pytest.LogCaptureFixture
) -> None:
    stack = await process()
    await live(stack, 1)
    await stack.indexing.catch_up()
    await qdrant.kill()
    for _ in range(2):
        assert await stack.found("cat")
    assert [record.levelname for record in caplog.records if "the index waits" in record.message] == [
        "WARNING"
    ]
    await qdrant.start()
    stack.clock.advance(minutes=2)
    await stack.indexing.catch_up()
    assert stack.indexing.behind is None


async def test_nothing_is_noted_without_a_server(stack: Stack, process: Opener) -> None:
    await stack.remember("Anna has a cat")
    todo = select(index_todo)
    assert not await stack.database.rows(todo)
    await (await process()).indexing.catch_up()
    await stack.remember("Anna has a dog")
    assert await stack.database.rows(todo)
    await stack.indexing.tidy()
    await stack.remember("Anna has a bird")
    assert not await stack.database.rows(todo)


async def test_another_embedders_index_takes_the_place_of_the_first(
    process: Opener, qdrant: QdrantServer, build_stack: StackBuilder, open_again: Any
) -> None:
    first = await process()
    await live(first, 1)
    await first.indexing.catch_up()

    class Other(BundledEmbedder):
        name = "openai:other"

    database = await open_again()
    other = await build_stack(database, Other(), ServerIndex(qdrant.url, None, Other(), database))
    other.indexing.wake = lambda: None  # type: ignore[method-assign]
    await other.indexing.catch_up()
    assert len(qdrant.collections) == 1
    assert (await on_the_server(other))["words"].keys() == (await in_process(other))["words"].keys()
    assert await first.found("cat"), "in the process"
    await first.indexing.try_to_catch_up()
    assert first.indexing.behind
    assert len(qdrant.collections) == 1
