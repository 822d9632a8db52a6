"""Recording never fails a turn, and never keeps one waiting."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_server import Hang, ScriptedServer

from agent import Companion, Settings
from agent.tracing import recorder
from agent.tracing.store import TraceFilter
from agent.tracing.trace import Trace
from agent.types import TurnRequest
from memory.errors import StoreUnavailable
from memory.spans import note, span

OpenPet = Callable[..., Awaitable[Companion]]
PetAt = Callable[..., Awaitable[Companion]]
Looked = Callable[..., Awaitable[Trace]]
Rows = Callable[..., list[dict[str, Any]]]

EVERY = TraceFilter(kinds=frozenset())


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
    await pet.components.recorder.flush()
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


async def test_what_cannot_be_serialized_costs_its_content_and_nothing_else(
    open_pet: OpenPet, last: Looked
) -> None:
    pet = await open_pet()
    other = await turn(pet, "other")
    for value in (Odd(), deep(20_000), circle()):
        id = await turn(pet, "said", value=value)
        trace = await last(pet)
        assert trace.id == id
        assert trace.root.data["lost"]
        assert [one.kind for one in trace.root.spans] == ["call"]
    assert (await pet.traces.get(other, pet.clock())).summary.said == "other"


async def test_odd_values_are_written_as_far_as_they_can_be(open_pet: OpenPet, last: Looked) -> None:
    pet = await open_pet()
    values = {
        "surrogate": ("half \ud83d of a pair", "half \ud83d of a pair"),
        "bytes": (b"\xff\xfe", "b'\\xff\\xfe'"),
        "keys": ({3: "three", "set": {2, 1}}, {"3": "three", "set": [1, 2]}),
        "nested": (deep(400), deep(400)),
        "usage": ({"input": 10**30, "output": "many", "cached": -3},) * 2,
    }
    await turn(pet, "half \ud83d", **{name: given for name, (given, _) in values.items()})
    trace = await last(pet)
    data = next(trace.spans("call")).data
    assert {name: data[name] for name in values} == {name: read for name, (_, read) in values.items()}
    assert trace.summary.said == "half \N{REPLACEMENT CHARACTER}"
    usage = trace.summary.usage
    assert (usage.input, usage.output, usage.cached) == (2**31 - 1, 0, 0), "what a column holds"

    await turn(pet, "x" * 5_000_000, value=["y" * 5_000_000])
    trace = await last(pet)
    [value] = next(trace.spans("call")).data["value"]
    assert value.startswith("y" * 100_000 + " … (4,900,000 more")
    assert len(trace.root.data["incoming"]["text"]) < 100_100
    assert trace.redacted


async def test_closing_writes_everything_even_after_a_cancelled_flush(
    open_pet: OpenPet, rows: Rows, home: Any, clock: Any
) -> None:
    async with Companion.open(Settings(home=home, embedder="bundled"), clock=clock, upkeep=False) as pet:
        await asyncio.gather(*(turn(pet, f"number {n}") for n in range(300)))
        flushing = asyncio.create_task(pet.components.recorder.flush())
        await asyncio.sleep(0.001)
        flushing.cancel()
        await turn(pet, "the last")
    assert len(rows("SELECT * FROM traces")) == 301


async def test_one_that_the_database_does_not_take_keeps_back_no_other(
    open_pet: OpenPet, caplog: pytest.LogCaptureFixture
) -> None:
    pet = await open_pet()
    for user in ("ana", "half \ud83d", "ben"):
        await turn(pet, user=user)
    await pet.components.recorder.flush()
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

    rec = pet.components.recorder
    rec._listeners = [Broken(), Good()]
    id = await turn(pet)
    assert (await last(pet)).id == id
    await rec.close()
    assert heard == [id, "closed"]
    assert "no ears" in caplog.text
    assert "no end" in caplog.text


async def test_beyond_its_bounds_the_oldest_go_and_the_log_says_how_many(
    open_pet: OpenPet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAITING", 10)
    pet = await open_pet()
    ids = [await turn(pet) for _ in range(25)]
    await pet.components.recorder.close()
    assert {one.id for one in await pet.traces.list(EVERY, pet.clock(), 50)} == set(ids[-10:])
    assert "15 traces came faster than they could be written" in caplog.text


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


async def test_a_turn_cut_off_when_the_companion_closes_is_seen(
    home: Any, server: ScriptedServer, rows: Rows
) -> None:
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
    rec = pet.components.recorder
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
