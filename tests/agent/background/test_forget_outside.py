"""What a forgetting removes outside of the database of memories: traces, and lines in files."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Hang, ScriptedServer, answer
from sqlalchemy import select

from agent.tracing.store import removal
from memory.errors import NotFound, StoreUnavailable
from memory.sql.tables import trace_bodies, traces

PIN = "my bank PIN is 4711"


@pytest.fixture(params=["one database", "a database of its own"])
def traces_url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return None if request.param == "one database" else f"sqlite:///{tmp_path / 'traces.db'}"


async def test_traces_that_show_it_lose_their_content_and_others_keep_theirs(
    open_pet: Any, traces_url: str | None, home: Path
) -> None:
    pet = await open_pet(traces_url=traces_url)
    for text in ("I like tea", PIN, "hello"):
        await pet.respond(text, user="ana", settle=True)
    await pet.respond("hello", user="ben")
    await pet.settle()
    (home / "hachi.log").write_text(f"{json.dumps({'fact': PIN})}\nben asked\n")
    (home / "chat_history").write_text(f"\n# now\n+{PIN}\n\n# now\n+hello\n")
    [memory] = [memory for memory in await pet.memories.list(user="ana") if memory.content == PIN]
    receipt = await pet.memories.forget(memory.id, user="ana")
    now = pet.clock()
    traces = {one.id: one async for one in pet.traces.each(_all(), now)}
    emptied = [one for one in traces.values() if one.status == "forgotten"]
    assert len(emptied) == receipt.traces >= 2
    assert {(one.said, one.reply, one.error) for one in emptied} == {("", "", None)}
    assert {one.said for one in traces.values() if one.kind == "turn"} == {"", "I like tea", "hello"}
    with pytest.raises(NotFound, match="is forgotten"):
        await pet.traces.get(emptied[0].id, now)
    logged = (home / "hachi.log").read_text()
    assert "4711" not in logged
    assert "ben asked" in logged
    assert "4711" not in (home / "chat_history").read_text()


async def test_an_undo_brings_the_content_of_traces_back_and_its_end_removes_it(
    open_pet: Any, traces_url: str | None, clock: Any
) -> None:
    pet = await open_pet(traces_url=traces_url)
    for text in ("I like tea", PIN, "what is my PIN?"):
        await pet.respond(text, user="ana", settle=True)
    await pet.settle()
    before = {one.id: one async for one in pet.traces.each(_all(), clock())}
    bodies = {id: await pet.traces.get(id, clock()) for id in before}
    known = {memory.content: memory for memory in await pet.memories.list(user="ana")}
    tea, pin = known["I like tea"], known[PIN]

    first = await pet.memories.forget(pin.id, user="ana")
    second = await pet.memories.forget(tea.id, user="ana")
    assert first.traces >= 3
    await pet.memories.undo_forget(str(first.undo_id), user="ana")
    shown = [one async for one in pet.traces.each(_all(), clock())]
    assert {one.said for one in shown if one.status == "forgotten"} == {""}
    await pet.memories.undo_forget(str(second.undo_id), user="ana")
    await pet.settle()
    after = {one.id: one async for one in pet.traces.each(_all(), clock())}
    assert {id: after[id] for id in before} == before
    assert {id: await pet.traces.get(id, clock()) for id in before} == bodies

    gone = await pet.memories.forget(pin.id, user="ana")
    clock.advance(minutes=11)
    await pet.settle()
    async with pet.traces.database.read() as connection:
        kept = set(await connection.scalars(select(trace_bodies.c.trace_id)))
        states = list(await connection.scalars(select(traces.c.status).where(traces.c.said == "")))
    assert 0 < len(before.keys() - kept) <= gone.traces
    assert "forgotten" in states
    assert not [state for state in states if state.startswith("forgotten ")]


async def test_an_erasure_ends_the_undo_of_traces(open_pet: Any, clock: Any) -> None:
    pet = await open_pet()
    await pet.respond(PIN, user="ana", place="acme", settle=True)
    await pet.settle()
    [memory] = await pet.memories.list(user="ana")
    await pet.memories.forget(memory.id, user="ana")
    assert (await pet.people.erase(user="ana")).verified
    assert [one async for one in pet.traces.each(_all(), clock())] == []


async def test_an_erasure_of_somebody_else_ends_it_in_files_too(
    open_pet: Any, home: Path, clock: Any
) -> None:
    pet = await open_pet()
    for user, text in (("ana", PIN), ("ben", "hello")):
        await pet.respond(text, user=user, place="acme", settle=True)
    [memory] = await pet.memories.list(user="ana")
    await pet.memories.forget(memory.id, user="ana")
    (home / "hachi.log").write_text(f"{json.dumps({'fact': PIN})}\n")  # by a turn that was running
    await pet.people.erase(user="ben")
    clock.advance(minutes=11)
    await pet.settle()
    assert "4711" not in (home / "hachi.log").read_text()


async def test_traces_that_cannot_be_reached_are_emptied_later(
    open_pet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    pet = await open_pet(traces_url=f"sqlite:///{tmp_path / 'traces.db'}")
    await pet.respond(PIN, user="ana", settle=True)
    await pet.settle()
    [memory] = await pet.memories.list(user="ana")
    with monkeypatch.context() as away:

        async def unreachable(*_: Any) -> int:
            raise StoreUnavailable("the traces are away")

        away.setattr(removal, "withhold", unreachable)
        assert (await pet.memories.forget(memory.id, user="ana")).traces == 0
    assert await pet.memories.list(user="ana") == []
    clock.advance(minutes=5)
    await pet.settle()
    assert {one.status async for one in pet.traces.each(_all(), pet.clock())} == {"forgotten"}


async def test_a_turn_that_is_running_meanwhile_leaves_no_trace_of_it(
    open_pet: Any, server: ScriptedServer
) -> None:
    pet = await open_pet(openai_base_url=server.url, model="tiny", look_back="off")
    server.script(answer("Noted."), Hang())
    await pet.respond(PIN, user="ana")
    await pet.remember("Ana's bank PIN is 4711", user="ana")
    running = asyncio.create_task(pet.respond("what is my PIN?", user="ana"))
    async with asyncio.timeout(20):
        while len(server.asked) < 2:  # noqa: ASYNC110 - the server gets the request in the running turn
            await asyncio.sleep(0.01)
    [memory] = await pet.memories.list(user="ana")
    await pet.memories.forget(memory.id, user="ana")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await pet.settle()
    shown = [one.said async for one in pet.traces.each(_all(), pet.clock())]
    assert "what is my PIN?" not in shown


def _all() -> Any:
    from agent.tracing.filters import TraceFilter

    return TraceFilter(kinds=frozenset())
