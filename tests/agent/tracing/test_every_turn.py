"""Every turn leaves a trace, however it ends."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, Fail, Hang, Raw, Say, ScriptedServer, answer

from agent import Companion
from agent.errors import BadInput, ModelError
from agent.tracing.store import TraceFilter
from agent.tracing.trace import Trace
from memory.errors import StoreUnavailable
from tools.registry import TOOLS

PetAt = Callable[..., Awaitable[Companion]]
Looked = Callable[..., Awaitable[Trace]]
Rows = Callable[..., list[dict[str, Any]]]

SEARCH = Call("search_memories", {"query": "shoulder"})


def names(trace: Trace) -> list[str]:
    return [f"{span.kind} {span.name}".strip() for span in trace.root.spans]


async def test_a_turn_with_tools_is_recorded_whole(
    pet_at: PetAt, way: Any, server: ScriptedServer, last: Looked
) -> None:
    pet = await pet_at(way)
    server.script(SEARCH, Call("remember", {"content": "Ana skis"}), answer("Noted."))

    reply, _ = await way.ask(pet, "I ski", user="ana", author="Ana")

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
    assert names(trace) == order.split("; ")
    assert ("first" in next(trace.spans("call")).data) is way.streamed
    search, remember = trace.spans("tool")
    assert search.data["arguments"] == '{"query": "shoulder"}'
    assert [span.kind for span in search.spans] == ["search"]
    assert [tool.data["result"] for tool in (search, remember)] == [tool.result for tool in reply.tools]
    [decision] = remember.spans
    [decided] = decision.data["decisions"]
    assert (decided["action"], decided["content"]) == ("add", "Ana skis")
    assert decided["id"] == reply.memories[0].id


async def test_tools_that_fail_are_recorded_with_their_tracebacks(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, last: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    pet = await pet_at(first_way)
    outcomes = iter([StoreUnavailable("the shelf is broken"), None])

    async def fails(*_: Any, **__: Any) -> Any:
        if error := next(outcomes):
            raise error
        await asyncio.Event().wait()

    monkeypatch.setattr(pet.components.recall, "search", fails)
    monkeypatch.setattr("agent.turn.loop.TOOL_SECONDS", 0.05)
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


async def test_of_anonymous_users_no_text_is_kept_and_with_traces_off_nothing_at_all(
    pet_at: PetAt, some_way: Any, server: ScriptedServer, last: Looked, rows: Rows, tmp_path: Path
) -> None:
    pet = await pet_at(some_way)
    server.script(Call("zebrafish", {"of": "pelican"}), answer("walrus"))
    await some_way.ask(pet, "octopus", user=None, author="Badger")

    trace = await last(pet)
    [row] = rows("SELECT * FROM traces")
    for word in ("zebrafish", "pelican", "walrus", "octopus", "Badger"):
        assert word not in str((trace, row))
    assert trace.summary.calls == 2
    assert trace.summary.tools == ("unknown!",)

    off = await pet_at(some_way, traces=False, home=tmp_path / "off")
    server.script(answer("Hello."))
    reply, _ = await some_way.ask(off, "hello", user="ana")
    await off.settle()
    assert reply.trace_id
    assert await off.traces.count(TraceFilter(kinds=frozenset())) == 0


FAULTS = {
    "refuses the key": ([Fail(401)], "ModelRejected"),
    "takes the request for wrong": ([Fail(400, "no such parameter")], "no such parameter"),
    "is down": ([Fail(503)] * 2, "ModelUnavailable"),
    "hangs": ([Hang()], "ModelUnavailable"),
    "sends a page of HTML": ([Raw(b"<html>hello</html>")], "Model"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_that(
    pet_at: PetAt, some_way: Any, server: ScriptedServer, last: Looked, fault: str
) -> None:
    steps, named = FAULTS[fault]
    pet = await pet_at(some_way, model_timeout=0.3 if fault == "hangs" else 60, model_retries=1)
    server.script(*steps)

    with pytest.raises(ModelError) as raised:
        await some_way.ask(pet, "hello", user="ana")

    trace = await last(pet)
    assert trace.id == raised.value.trace_id
    assert trace.summary.status == "error"
    assert named in str(trace.summary.error)
    calls = list(trace.spans("call"))
    assert 1 <= len(calls) <= len(steps)
    for call in calls:
        assert call.error
        assert call.took is not None
        assert call.data["request"]["input"] == [{"content": "hello", "role": "user"}]


async def test_a_turn_that_its_client_gives_up(
    pet_at: PetAt, some_way: Any, server: ScriptedServer, last: Looked
) -> None:
    pet = await pet_at(some_way)
    server.script(Hang("Let me think about", 1))
    turn = asyncio.create_task(some_way.ask(pet, "hello", user="ana"))
    async with asyncio.timeout(10):
        while not server.asked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    turn.cancel()
    await asyncio.wait([turn])
    async with asyncio.timeout(10):
        while not pet.components.recorder._ended:  # noqa: ASYNC110 - a stream ends a moment later
            await asyncio.sleep(0.01)

    trace = await last(pet)
    assert (trace.summary.status, trace.summary.said) == ("error", "hello")
    assert "CancelledError" in str(trace.summary.error)


async def test_what_cannot_be_read(open_pet: Any, last: Looked) -> None:
    pet = await open_pet()
    with pytest.raises(BadInput):
        await pet.respond("  ", user="ana")

    trace = await last(pet)
    assert trace.summary.error == "BadInput: the message is empty"
    assert trace.root.spans == []


async def test_a_turn_that_hangs_is_seen_by_others_within_a_second(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, home: Path
) -> None:
    pet = await pet_at(first_way)
    server.script(Hang())
    await pet.runtime()
    turn = asyncio.create_task(pet.respond("are you there?", user="ana"))

    def seen() -> list[tuple[str, str]]:
        with closing(sqlite3.connect(home / "hachi.db", timeout=15)) as connection:
            return connection.execute("SELECT status, said FROM traces").fetchall()

    async with asyncio.timeout(10):
        while not server.asked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with asyncio.timeout(1):
        while not seen():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert seen() == [("running", "are you there?")]
    async with asyncio.timeout(10):  # on a busy machine the call is only in the second writing
        while len((trace := await pet.traces.get("last", pet.clock())).root.spans) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert [span.kind for span in trace.root.spans] == ["scene", "call"]
    assert trace.root.took is None
    late = pet.clock() + timedelta(hours=1)
    assert (await pet.traces.find("last", late)).status == "killed"
    turn.cancel()
    await asyncio.wait([turn])


async def test_ids_made_in_a_turn_follow_from_the_traces_id(open_pet: Any) -> None:
    from agent.turn.turn import receive
    from agent.types import TurnRequest

    async def first_ids(home: Path) -> tuple[str | None, str | None]:
        pet = await open_pet(home=home)
        house = (await pet.runtime()).turn
        incoming = TurnRequest("hello", "ana", pet.clock())
        with house.recorder.turn(incoming, "m", id="trace_" + "1" * 32):
            return (await receive(house, incoming)).id, None

    import tempfile

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        assert await first_ids(Path(one)) == await first_ids(Path(other))


async def test_every_tool_that_comes_with_it_is_known_in_what_made_a_trace(
    open_pet: Any, last: Looked
) -> None:
    pet = await open_pet()
    await pet.respond("hello", user="ana")
    made_by = (await last(pet)).made_by
    assert set(made_by["tools"]) == {tool.name for tool in TOOLS}
    assert made_by["tools"]["remember"]["parameters"] == TOOLS[3].schema
    assert set(made_by["versions"]) >= {"hachi", "openai-agents"}
    assert "last_call" in made_by["prompts"]


@pytest.mark.parametrize("settle", [True, False])
async def test_work_afterwards_is_linked_to_its_turn(
    pet_at: PetAt, first_way: Any, server: ScriptedServer, settle: bool
) -> None:
    pet = await pet_at(first_way)
    server.script(answer("So you ski!", {"content": "Ana skis"}))

    reply = await pet.respond("I ski", user="ana", settle=settle)
    await pet.settle()

    after = await pet.traces.after(reply.trace_id, pet.clock())
    assert {trace.summary.kind for trace in after} == {"store_memories", "look_back"}
    [stored] = [trace for trace in after if trace.summary.kind == "store_memories"]
    [decision] = stored.spans("decision")
    assert [made["content"] for made in decision.data["decisions"]] == ["Ana skis"]
    [looked] = [trace for trace in after if trace.summary.kind == "look_back"]
    assert [call.name for call in looked.spans("call")] == ["tiny"]
    own = await pet.traces.get(reply.trace_id, pet.clock())
    assert not list(own.spans("decision")), "what was done afterwards is not in the turn"


async def test_a_job_in_which_nothing_happened_leaves_no_trace(open_pet: Any) -> None:
    pet = await open_pet(look_back="off")
    await pet.respond("hello", user="ana")
    await pet.settle()
    assert await pet.traces.count(TraceFilter(kinds=frozenset())) == 1
