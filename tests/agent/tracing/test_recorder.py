"""Every turn leaves a trace, however it ends; recording never fails a turn and never keeps one waiting."""

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from scripted_server import Call, Fail, Hang, Say, answer
from sqlalchemy import event

from agent.errors import ModelError
from agent.tracing import recorder
from agent.tracing.store.filters import TraceFilter
from agent.types import TurnRequest
from hachi import Companion, Settings
from memory.audience import PRIVATE
from memory.errors import StoreUnavailable
from memory.process.breaker import FIRST_PAUSE
from memory.process.spans import note, span
from tools.registry import TOOLS

EVERY = TraceFilter(kinds=frozenset())
SEARCH = Call("search_memories", {"query": "shoulder"})


async def until(holds: Callable[[], Any], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_turn_with_tools_is_recorded_whole(pet_at, some_way, server, last):
    pet = await pet_at(some_way)
    server.script(SEARCH, Call("remember", {"content": "Ana skis"}), answer("Noted."))

    reply, _ = await some_way.ask(pet, "I ski", user="ana", author="Ana")

    trace = await last(pet)
    assert trace.id == reply.trace_id
    summary = trace.summary
    assert (summary.status, summary.kind, summary.user, summary.place) == ("ok", "turn", "ana", "")
    assert (summary.said, summary.reply, summary.calls, summary.model) == ("I ski", "Noted.", 3, "tiny")
    assert (summary.usage.input, summary.usage.output) == (30, 15)
    assert summary.tools == ("search_memories", "remember")
    assert trace.root.data["incoming"]["author"] == "Ana"
    told = {"message": "Noted.", "message_id": reply.message_id, "calls": 3}
    assert trace.root.data["reply"] == told
    order = "scene; call tiny; tool search_memories; call tiny; tool remember; call tiny; answer"
    assert [f"{span.kind} {span.name}".strip() for span in trace.root.spans] == order.split("; ")
    assert ("first" in list(trace.spans("call"))[-1].data) is some_way.streamed
    search, remember = trace.spans("tool")
    assert search.data["arguments"] == '{"query": "shoulder"}'
    assert [span.kind for span in search.spans] == ["search", "search"], "the newest, as nothing was found"
    assert [tool.data["result"] for tool in (search, remember)] == [tool.result for tool in reply.tools]
    [decision] = remember.spans
    [decided] = decision.data["decisions"]
    assert (decided["action"], decided["content"]) == ("add", "Ana skis")
    assert decided["id"] == reply.memories[0].id
    made_by = trace.made_by
    assert set(made_by["tools"]) == {tool.name for tool in TOOLS}
    assert made_by["tools"]["remember"]["parameters"] == TOOLS[3].schema
    assert set(made_by["versions"]) >= {"hachi", "openai-agents"}
    assert "last_call" in made_by["prompts"]


async def test_tools_that_fail_are_recorded_with_tracebacks(pet_at, first_way, server, last, monkeypatch):
    pet = await pet_at(first_way)
    outcomes = iter([StoreUnavailable("the shelf is broken"), None])

    async def fails(*_: Any, **__: Any) -> Any:
        if error := next(outcomes):
            raise error
        await asyncio.Event().wait()

    monkeypatch.setattr(pet.components.recall, "look", fails)
    monkeypatch.setattr("tools.registry.TOOL_SECONDS", 0.05)
    server.script(SEARCH, SEARCH, Call("open the\nfridge", {}), Say("just text"))

    await pet.respond("what about my shoulder?", user="ana")

    trace = await last(pet)
    broken, stuck, unknown = trace.spans("tool")
    assert trace.summary.status == "tool_error"
    assert trace.summary.tools == ("search_memories!", "search_memories!", "open_the_fridge!")
    assert broken.data["ok"] is False
    assert "the shelf is broken" in broken.data["result"]
    assert "StoreUnavailable: the shelf is broken" in broken.data["traceback"]
    assert "TimeoutError" in stuck.data["traceback"]
    assert stuck.took is not None
    assert stuck.took > 0.04
    assert unknown.data["ok"] is False
    [read] = trace.spans("answer")
    assert (read.data["well_formed"], read.data["answer"]["message"]) == (False, "just text")


async def test_of_anonymous_users_no_text_is_kept(pet_at, first_way, server, last, rows, tmp_path):
    pet = await pet_at(first_way)
    server.script(Call("zebrafish", {"of": "pelican"}), answer("walrus"))
    await first_way.ask(pet, "octopus", user=None, author="Badger")

    trace = await last(pet)
    [row] = rows("SELECT * FROM traces")
    for word in ("zebrafish", "pelican", "walrus", "octopus", "Badger"):
        assert word not in str((trace, row))
    assert trace.summary.calls == 2
    assert trace.summary.tools == ("unknown!",)

    off = await pet_at(first_way, trace_content="off", home=tmp_path / "off")
    server.script(answer("Hello."))
    reply, _ = await first_way.ask(off, "hello", user="ana")
    await off.settle()
    assert reply.trace_id
    assert await off.traces.count(TraceFilter(kinds=frozenset())) == 0


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([Fail(400, "no such parameter")], "ModelRejected: .*no such parameter"),
        ([Hang()], "ModelUnavailable"),
    ],
    ids=["refused", "hanging"],
)
async def test_a_turn_whose_model_fails_leaves_a_trace(pet_at, first_way, server, last, steps, named):
    pet = await pet_at(first_way, model_timeout=0.5, model_retries=1)
    server.script(*steps)

    with pytest.raises(ModelError) as raised:
        await first_way.ask(pet, "hello", user="ana")

    trace = await last(pet)
    assert trace.id == raised.value.trace_id
    assert trace.summary.status == "error"
    assert re.match(named, str(trace.summary.error))
    calls = list(trace.spans("call"))
    assert 1 <= len(calls) <= len(steps)
    for call in calls:
        assert call.error
        assert call.took is not None
        [sent] = call.data["request"]["input"]
        assert sent["content"].endswith("\nana: hello")


async def test_a_turn_that_its_client_gives_up_is_recorded(pet_at, one_streamed, server, last):
    pet = await pet_at(one_streamed)
    server.script(Hang("Let me think about", 1))
    turn = asyncio.create_task(one_streamed.ask(pet, "hello", user="ana"))
    await until(lambda: server.asked, 10)
    turn.cancel()
    await asyncio.wait([turn])
    await until(lambda: pet.components.recorder._ended, 10)
    trace = await last(pet)
    assert (trace.summary.status, trace.summary.error) == ("stopped", "CancelledError: it was stopped")
    assert await pet.traces.list(TraceFilter(failed=True), pet.clock()) == [], "a stop is no failure"


async def test_a_turn_that_hangs_is_seen_by_others_within_a_second(pet_at, first_way, server, home):
    pet = await pet_at(first_way)
    server.script(Hang())
    await pet.runtime()
    turn = asyncio.create_task(pet.respond("are you there?", user="ana"))

    def seen() -> list[tuple[str, str]]:
        with closing(sqlite3.connect(home / "hachi.db", timeout=15)) as connection:
            return connection.execute("SELECT status, said FROM traces").fetchall()

    await until(lambda: server.asked, 10)
    await until(lambda: seen(), 1)
    assert seen() == [("running", "are you there?")]
    async with asyncio.timeout(60):  # on a busy machine the call is only in the second writing
        while len((trace := await pet.traces.get("last", pet.clock())).root.spans) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert [span.kind for span in trace.root.spans] == ["scene", "call"]
    assert trace.root.took is None
    late = pet.clock() + timedelta(hours=1)
    assert (await pet.traces.find("last", late)).status == "killed"
    turn.cancel()
    await asyncio.wait([turn])


async def test_background_jobs_are_linked_to_their_turn(pet_at, first_way, server):
    pet = await pet_at(first_way)
    server.script(answer("So you ski!", {"content": "Ana skis"}))

    reply = await pet.respond("I ski", user="ana")
    await pet.settle()

    after = await pet.traces.after(reply.trace_id, pet.clock())
    assert {trace.summary.kind for trace in after} == {"store_memories", "consolidate"}
    [stored] = [trace for trace in after if trace.summary.kind == "store_memories"]
    [decision] = stored.spans("decision")
    assert [made["content"] for made in decision.data["decisions"]] == ["Ana skis"]
    [looked] = [trace for trace in after if trace.summary.kind == "consolidate"]
    [call] = looked.spans("call")
    assert (call.name, call.data["output"][0]["content"][0]["text"]) == ("tiny", '{"summary": ""}')
    assert call.data["request"]["input"] in server.consolidations[0].text
    own = await pet.traces.get(reply.trace_id, pet.clock())
    assert not list(own.spans("decision")), "what was done afterwards is not in the turn"


async def turn(pet: Companion, text: str = "hello", user: str = "ana", **data: Any) -> str:
    """A turn in which nothing happens but what is noted."""
    await pet.runtime()
    request = TurnRequest(text, user, pet.clock())
    with pet.components.recorder.turn(request, "tiny") as turning, span("call", "tiny"):
        note(**data)
    return turning.id


async def test_a_trace_that_cannot_be_written_fails_no_turn_and_is_written_later(
    open_pet, monkeypatch, caplog, clock
):
    pet = await open_pet(consolidate="off")
    real = pet.traces.write
    monkeypatch.setattr(pet.traces, "write", AsyncMock(side_effect=OSError("gone")))
    assert (await pet.respond("lost", user="ana")).message
    await pet.components.recorder.flush()
    assert "gone" in caplog.text

    away = StoreUnavailable("the server has gone")
    monkeypatch.setattr(pet.traces, "write", AsyncMock(side_effect=away))
    ids = {await turn(pet) for _ in range(3)}
    await pet.components.recorder.flush()
    assert await pet.traces.count(EVERY) == 0
    monkeypatch.setattr(pet.traces, "write", real)
    clock.now += FIRST_PAUSE
    async with asyncio.timeout(60):
        while await pet.traces.count(EVERY) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert {one.id for one in await pet.traces.list(EVERY, pet.clock())} == ids
    assert caplog.text.count("the server has gone") == 1, "logged once"


async def test_closing_writes_everything_even_after_a_cancelled_flush(open_pet, rows, home, clock):
    async with Companion.open(
        Settings(home=home, embedder="bundled"), clock=clock, periodic_jobs=False
    ) as pet:
        await asyncio.gather(*(turn(pet, f"number {n}") for n in range(60)))
        flushing = asyncio.create_task(pet.components.recorder.flush())
        await asyncio.sleep(0.001)
        flushing.cancel()
        await turn(pet, "the last")
    assert len(rows("SELECT * FROM traces")) == 61


async def test_one_that_the_database_does_not_take_keeps_back_no_other(open_pet, caplog):
    pet = await open_pet()
    for user in ("ana", "half \ud83d", "ben"):
        await turn(pet, user=user)
    await pet.components.recorder.flush()
    assert {one.user for one in await pet.traces.list(EVERY, pet.clock())} == {"ana", "ben"}
    assert "could not be written" in caplog.text


async def test_a_listener_that_raises_is_logged_and_no_more(open_pet, last, caplog):
    pet = await open_pet()

    class Broken:
        def __call__(self, *_: Any) -> None:
            raise ValueError("no ears")

        def close(self) -> None:
            raise ValueError("no end")

    rec = pet.components.recorder
    rec._listener = Broken()
    id = await turn(pet)
    assert (await last(pet)).id == id
    await rec.close()
    assert "no ears" in caplog.text
    assert "no end" in caplog.text


async def test_beyond_its_bounds_the_oldest_go_and_the_log_says_how_many(open_pet, monkeypatch, caplog):
    monkeypatch.setattr(recorder, "MAX_WAITING", 10)
    pet = await open_pet()
    ids = [await turn(pet) for _ in range(25)]
    await pet.components.recorder.close()
    assert {one.id for one in await pet.traces.list(EVERY, pet.clock(), 50)} == set(ids[-10:])
    assert "15 traces came faster than they could be written" in caplog.text


async def test_a_turn_that_goes_on_is_written_ever_more_seldom(pet_at, first_way, server, monkeypatch):
    monkeypatch.setattr(recorder, "PAUSE", 0.01)
    monkeypatch.setattr(recorder, "REWRITE_AFTER", 0.05)
    pet = await pet_at(first_way)
    real, writes = pet.traces.write, []

    async def counted(*given: Any) -> int:
        writes.append(given)
        return await real(*given)

    monkeypatch.setattr(pet.traces, "write", counted)
    await pet.runtime()
    with pet.components.recorder.turn(TurnRequest("hello", "ana", pet.clock()), "tiny"):
        for _ in range(60):
            with span("tool", "x"):
                await asyncio.sleep(0.01)
        going_on = len(writes)
    assert 2 <= going_on <= 5


async def test_a_turn_that_goes_on_keeps_nobody_from_closing(open_pet, monkeypatch):
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


async def test_a_forgetting_finds_a_trace_by_each_row_that_the_turn_was_shown(
    pet_at, first_way, server, rows
):
    pet = await pet_at(first_way, consolidate="off")
    server.script(answer("Nice."))
    before = await pet.respond("we met at the harbour", user="ana")
    fact = await pet.remember("Ana loves her boat", user="ana", subjects=["ana"])
    task = Call("update_task", {"id": None, "description": "paint the boat", "status": "open"})
    server.script(task, answer("Noted."))
    await pet.respond("remind me", user="ana")
    server.script(Call("search_memories", {"query": "boat"}), Call("get_recent_memories", {}), answer("Yes."))
    shown = await pet.respond("which boat?", user="ana", conversation="other")
    [open_task] = await pet.components.tasks.list("ana", PRIVATE)
    await pet.settle()

    found = {str(UUID(bytes=row["row_id"])) for row in rows("SELECT row_id FROM trace_rows")}
    assert found >= {fact.id, open_task.id, before.message_id, shown.message_id}
    [seq] = [row["seq"] for row in rows("SELECT seq FROM traces WHERE id = ?", shown.trace_id)]
    of_it = rows("SELECT row_id FROM trace_rows WHERE trace = ?", seq)
    assert {fact.id, open_task.id} <= {str(UUID(bytes=row["row_id"])) for row in of_it}


async def test_a_row_that_is_forgotten_while_a_turn_runs_takes_its_content(pet_at, first_way, server):
    """Also what of the turn was written before, as of a long one."""
    pet = await pet_at(first_way)
    fact = await pet.remember("Ana loves her boat", user="ana", subjects=["ana"])
    server.script(Call("search_memories", {"query": "boat"}), Hang())
    turn = asyncio.create_task(pet.respond("which boat?", user="ana"))
    await until(lambda: len(server.asked) == 2, 10)
    while not await pet.traces.count(TraceFilter()):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await pet.components.recorder.forget_rows([fact.id])
    turn.cancel()
    await asyncio.wait([turn])
    await pet.settle()
    [summary] = await pet.traces.list(TraceFilter(), pet.clock())
    assert (summary.status, summary.content, summary.said, summary.calls) == ("stopped", "forgotten", "", 2)


async def test_a_turn_and_the_work_after_it_are_written_in_five_statements(
    pet_at, first_way, server, monkeypatch
):
    monkeypatch.setattr(recorder, "PAUSE", 3600.0)
    pet = await pet_at(first_way, consolidate="off")
    server.script(Call("search_memories", {"query": "tea"}), answer("Tea.", {"content": "Ana likes tea"}))
    await pet.respond("what do I drink?", user="ana")
    await (await pet.runtime()).worker.settle()
    asked = list[str]()
    engine = pet.components.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2].split()[0]))
    await pet.components.recorder.flush()
    assert await pet.traces.count(TraceFilter(kinds=frozenset())) == 2
    assert [word for word in asked if word != "BEGIN"][:-1] == ["SELECT"] * 2 + ["INSERT"] * 3
