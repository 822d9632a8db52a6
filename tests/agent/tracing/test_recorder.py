"""Recording never fails a turn, and never keeps one waiting."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_server import Call, Hang, ScriptedServer, answer

from agent import Companion
from agent.tracing import recorder
from agent.tracing.recorder import Recorder
from agent.tracing.store import TraceFilter
from agent.tracing.trace import Trace
from agent.types import TurnRequest
from memory.errors import StoreUnavailable
from memory.spans import note, span
from memory.sql.engine import Database

OpenPet = Callable[..., Awaitable[Companion]]
PetAt = Callable[..., Awaitable[Companion]]
Looked = Callable[..., Awaitable[Trace]]
Rows = Callable[..., list[dict[str, Any]]]

EVERY = TraceFilter(kinds=frozenset())


async def recorder_of(pet: Companion) -> Recorder:
    return pet.components.recorder


async def turn(pet: Companion, text: str = "hello", user: str = "ana", **data: Any) -> str:
    """A turn in which nothing happens but what is noted."""
    house = (await pet.runtime()).turn
    with house.recorder.turn(TurnRequest(text, user, pet.clock()), "tiny") as turning, span("call", "tiny"):
        note(**data)
    return turning.id


def away(pet: Companion, monkeypatch: pytest.MonkeyPatch, why: Exception) -> None:
    async def refused(*_: Any, **__: Any) -> int:
        raise why

    monkeypatch.setattr(pet.traces, "write", refused)


@pytest.mark.parametrize("why", [StoreUnavailable("db: the disk is full; make room"), OSError("gone")])
async def test_a_turn_ends_as_ever_where_traces_cannot_be_written(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, why: Exception
) -> None:
    pet = await open_pet()
    away(pet, monkeypatch, why)

    reply = await pet.respond("hello", user="ana")
    await pet.settle()

    assert reply.message
    assert str(why) in caplog.text


async def test_what_could_not_be_written_is_written_once_the_store_is_back(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pet = await open_pet()
    monkeypatch.setattr(recorder, "RETRY_AFTER", 0.05)
    real = pet.traces.write
    away(pet, monkeypatch, StoreUnavailable("the server has gone"))
    ids = {await turn(pet) for _ in range(3)}
    await (await recorder_of(pet)).flush()
    assert await pet.traces.count(EVERY) == 0

    monkeypatch.setattr(pet.traces, "write", real)
    async with asyncio.timeout(5):
        while await pet.traces.count(EVERY) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    assert {one.id for one in await pet.traces.list(EVERY, pet.clock())} == ids
    assert caplog.text.count("the server has gone") == 1, "it is told once"


async def test_nobody_waits_long_for_a_store_that_does_not_answer(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await open_pet()
    monkeypatch.setattr(recorder, "FLUSH_TIMEOUT", 0.1)
    monkeypatch.setattr(recorder, "WRITE_TIMEOUT", 0.3)

    async def stuck(*_: Any, **__: Any) -> int:
        return await asyncio.Event().wait() and 0

    monkeypatch.setattr(pet.traces, "write", stuck)
    began = time.monotonic()
    await pet.respond("hello", user="ana")
    await pet.settle()
    assert time.monotonic() - began < 5


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"in": [value]}
    return value


def circle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize("value", [Odd(), deep(20_000), circle()], ids=["odd", "deep", "circular"])
async def test_what_cannot_be_written_costs_its_content_and_nothing_else(
    open_pet: OpenPet, last: Looked, value: Any
) -> None:
    pet = await open_pet()
    other = await turn(pet, "other")
    id = await turn(pet, "said", value=value)

    trace = await last(pet)
    assert trace.id == id
    assert trace.root.data["lost"]
    assert [one.kind for one in trace.root.spans] == ["call"]
    assert (await pet.traces.get(other, pet.clock())).summary.said == "other"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("half \ud83d of a pair", "half \ud83d of a pair"),
        (b"\xff\xfe", "b'\\xff\\xfe'"),
        ({3: "three", "set": {2, 1}}, {"3": "three", "set": [1, 2]}),
        (deep(400), deep(400)),
    ],
    ids=["surrogate", "bytes", "keys", "nested"],
)
async def test_odd_values_are_written_as_far_as_they_can_be(
    open_pet: OpenPet, last: Looked, value: Any, read: Any
) -> None:
    pet = await open_pet()
    await turn(pet, "half \ud83d", value=value)
    trace = await last(pet)
    assert next(trace.spans("call")).data["value"] == read
    assert trace.summary.said == "half \N{REPLACEMENT CHARACTER}"


async def test_of_five_million_characters_the_beginning_is_kept(open_pet: OpenPet, last: Looked) -> None:
    pet = await open_pet()
    await turn(pet, "x" * 5_000_000, value=["y" * 5_000_000])
    trace = await last(pet)
    [value] = next(trace.spans("call")).data["value"]
    assert value.startswith("y" * 100_000 + " … (4,900,000 more")
    assert len(trace.root.data["incoming"]["text"]) < 100_100
    assert trace.redacted


async def test_a_count_that_no_column_holds_is_written_as_the_largest(
    open_pet: OpenPet, last: Looked
) -> None:
    pet = await open_pet()
    await turn(pet, usage={"input": 10**30, "output": "many", "cached": -3})
    usage = (await last(pet)).summary.usage
    assert (usage.input, usage.output, usage.cached) == (2**31 - 1, 0, 0)


async def test_one_that_the_database_does_not_take_keeps_back_no_other(
    open_pet: OpenPet, caplog: pytest.LogCaptureFixture
) -> None:
    pet = await open_pet()
    for user in ("ana", "half \ud83d", "ben"):
        await turn(pet, user=user)
    await (await recorder_of(pet)).flush()
    assert {one.user for one in await pet.traces.list(EVERY, pet.clock())} == {"ana", "ben"}
    assert "could not be written" in caplog.text


async def test_a_listener_that_raises_is_logged_and_no_more(
    open_pet: OpenPet, last: Looked, caplog: pytest.LogCaptureFixture
) -> None:
    pet = await open_pet()
    heard = []

    class Broken:
        def __call__(self, *_: Any) -> None:
            raise ValueError("no ears")

        def close(self) -> None:
            raise ValueError("no end")

    class Good:
        def __call__(self, summary: Any, body: bytes) -> None:
            heard.append(summary.id)

        def close(self) -> None:
            heard.append("closed")

    rec = await recorder_of(pet)
    rec._listeners = [Broken(), Good()]
    id = await turn(pet)
    assert (await last(pet)).id == id
    await rec.close()
    assert heard == [id, "closed"]
    assert "no ears" in caplog.text
    assert "no end" in caplog.text


async def test_a_thousand_turns_at_once_are_all_written(open_pet: OpenPet) -> None:
    pet = await open_pet()
    await asyncio.gather(*(turn(pet, f"number {n}") for n in range(1000)))
    await (await recorder_of(pet)).close()
    assert await pet.traces.count(EVERY) == 1000


async def test_beyond_its_bounds_the_oldest_go_and_the_log_says_how_many(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAITING", 10)
    pet = await open_pet()
    ids = [await turn(pet) for _ in range(25)]
    await (await recorder_of(pet)).close()
    assert {one.id for one in await pet.traces.list(EVERY, pet.clock(), 50)} == set(ids[-10:])
    assert "15 traces came faster than they could be written" in caplog.text


async def test_closing_loses_nothing(open_pet: OpenPet, rows: Rows, home: Any, clock: Any) -> None:
    from agent import Settings

    async with Companion.open(Settings(home=home, embedder="bundled"), clock=clock, upkeep=False) as pet:
        for number in range(30):
            await turn(pet, f"number {number}")
            if number % 7 == 0:
                await asyncio.sleep(0)
        flushing = asyncio.create_task((await recorder_of(pet)).flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await turn(pet, "the last")
    assert len(rows("SELECT * FROM traces")) == 31


async def test_a_writer_that_is_cancelled_in_the_middle_loses_nothing(open_pet: OpenPet) -> None:
    pet = await open_pet()
    ids = {await turn(pet) for _ in range(5)}
    rec = await recorder_of(pet)
    waiting = asyncio.create_task(rec.flush())
    await asyncio.sleep(0.001)
    waiting.cancel()
    await asyncio.wait([waiting])
    await rec.flush()
    assert {one.id for one in await pet.traces.list(EVERY, pet.clock())} == ids


async def test_a_turn_that_goes_on_is_written_ever_more_seldom(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "PAUSE", 0.01)
    monkeypatch.setattr(recorder, "REWRITE_AFTER", 0.05)
    pet = await pet_at(first_way)
    real, writes = pet.traces.write, []

    async def counted(*given: Any) -> int:
        writes.append(time.monotonic())
        return await real(*given)

    monkeypatch.setattr(pet.traces, "write", counted)
    house = (await pet.runtime()).turn
    with house.recorder.turn(TurnRequest("hello", "ana", pet.clock()), "tiny"):
        for _ in range(60):
            with span("tool", "x"):
                await asyncio.sleep(0.01)
        going_on = len(writes)
    assert 2 <= going_on <= 5


async def test_a_turn_says_the_same_whether_it_is_recorded_or_not(
    pet_at: PetAt, some_way: Any, server: ScriptedServer, tmp_path: Any
) -> None:
    asked = []
    for traces in (True, False):
        pet = await pet_at(some_way, traces=traces, home=tmp_path / str(traces))
        server.script(Call("search_memories", {"query": "tea"}, id="one"), answer("None."))
        await some_way.ask(pet, "tea?", user="ana")
        asked.append([request.json for request in server.asked[-2:]])
    assert len(asked[0]) == len(asked[1]) == 2
    assert asked[0][0] == asked[1][0]


async def test_where_their_database_is_away_turns_go_on(
    open_pet: OpenPet, tmp_path: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await open_pet(traces_url=f"sqlite:///{tmp_path / 'traces.db'}")
    elsewhere: Database = pet.traces._database
    await elsewhere.close()
    (tmp_path / "traces.db").unlink()
    (tmp_path / "traces.db").mkdir()
    caplog.set_level(logging.WARNING)

    reply = await pet.respond("hello", user="ana", settle=True)
    await pet.settle()

    assert reply.message
    assert "traces cannot be written now" in caplog.text


async def test_a_turn_cut_off_when_the_companion_closes_is_seen(
    home: Any, server: ScriptedServer, rows: Rows
) -> None:
    from agent import Settings

    server.script(Hang())
    settings = Settings(
        home=home, embedder="bundled", openai_base_url=server.url, openai_api_key="k", model="m"
    )  # type: ignore[arg-type]
    async with Companion.open(settings, upkeep=False) as pet:
        going_on = asyncio.create_task(pet.respond("hello", user="ana"))
        async with asyncio.timeout(10):
            while not server.asked:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.15)
    going_on.cancel()
    await asyncio.wait([going_on])
    [row] = rows("SELECT status, said FROM traces")
    assert row == {"status": "running", "said": "hello"}


async def test_what_ended_before_a_turn_that_goes_on_stands_before_it(open_pet: OpenPet) -> None:
    pet = await open_pet()
    house = (await pet.runtime()).turn
    with house.recorder.turn(TurnRequest("second", "ana", pet.clock()), "tiny"):
        await turn(pet, "first")
        await asyncio.sleep(recorder.PAUSE)
        await house.recorder.flush()
    assert [one.said for one in await pet.traces.list(EVERY, pet.clock())] == ["second", "first"]


async def test_a_turn_that_goes_on_keeps_nobody_from_closing(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another ends at the very moment of closing."""
    pet = await open_pet()
    rec = await recorder_of(pet)
    flush = rec._flush

    async def flush_and_end_one(*, last: bool = False) -> None:
        await flush(last=last)
        if last:
            await turn(pet)

    monkeypatch.setattr(rec, "_flush", flush_and_end_one)
    with rec.turn(TurnRequest("a long one", "ana", pet.clock()), "tiny"):
        await asyncio.sleep(2 * recorder.PAUSE)
        closed, _ = await asyncio.wait([asyncio.create_task(rec.close())], timeout=3)
    assert closed
