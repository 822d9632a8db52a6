"""A replayed turn is the same if nothing has changed, else what changed is named first."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message
from scripted_server import Call, Fail, Hang, Say, answer

from agent.errors import BadInput
from agent.replay.replay import ReplayOptions, replay
from agent.replay.testing import make_test
from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import TraceWithJobs
from hachi import Companion
from memory.process.spans import Span

DENTIST = (Call("search_memories", {"query": "dentist"}), answer("Leo."))
TODAY = ReplayOptions(memory="today")


async def whole(pet: Companion, trace: Any) -> TraceWithJobs:
    return await pet.traces.get_with_jobs(trace.id, pet.clock())


async def test_what_was_learned_later_changes_nothing_and_nothing_is_written(pet, recorded, server, rows):
    trace = await recorded()
    later = {"content": "Ana loves her cat Mitzi more", "subjects": ["ana"], "ttl": None}
    await recorded(Call("remember", later), answer("Noted."), said="I love my cat Mitzi more")
    await pet.people.set_context("language", "French", user="ana")
    for memory in await pet.memories.list(user="ana"):
        await pet.memories.forget(memory.id, user="ana")
    await pet.settle()
    tables = [row["name"] for row in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    before, asked = {table: rows(f"SELECT * FROM {table}") for table in tables}, len(server.asked)

    replayed = await replay(pet, TraceWithJobs(trace))
    await replay(pet, TraceWithJobs(trace), TODAY)

    assert replayed.differences == ()
    assert replayed.same
    assert len(server.asked) == asked
    assert {table: rows(f"SELECT * FROM {table}") for table in tables} == before


async def test_memory_of_today_says_what_is_found_otherwise(pet, recorded, clock):
    trace = await recorded(*DENTIST, said="who is he?")
    dentist = next(m.id for m in await pet.memories.list(user="ana") if "dentist" in m.content)
    clock.advance(minutes=1)
    await pet.memories.update(dentist, "Ana's dentist is Bob", user="ana")
    gone, new, first, *_ = (await replay(pet, await whole(pet, trace), TODAY)).differences
    assert gone.where == "no longer given “Ana's dentist is Leo”"
    assert gone.what.startswith("replaced: on ")
    assert (new.where, new.what[:18]) == ("given now “Ana's dentist is Bob”", "then stated later:")
    assert (first.where, first.what) == ("search_memories, result", "differs")
    assert ("Leo" in first.before, "Bob" in first.after) == (True, True)


async def test_what_went_wrong_goes_wrong_again(pet, failing, recorded):
    retried = await recorded(Fail(500, "for a moment"), answer("Here I am."), said="are you there?")
    malformed = await recorded(Say("Just words."), said="hm")
    failed = await failing(pet)
    assert (retried.summary.calls, malformed.summary.status) == (2, "malformed")
    for trace in (retried, malformed, failed):
        replayed = await replay(pet, await whole(pet, trace))
        assert replayed.differences == ()
    assert replayed.after.summary.error == failed.summary.error


async def test_a_turn_that_was_cancelled_is_cancelled_again(pet, server):
    server.script(Call("search_memories", {"query": "dentist"}), Hang())
    turn = asyncio.create_task(pet.respond("who is he?", user="ana"))
    async with asyncio.timeout(60):
        while len(server.asked) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    turn.cancel()
    await asyncio.wait([turn])
    await pet.settle()
    [summary] = await pet.traces.list(TraceFilter(), pet.clock())
    replayed = await replay(pet, await whole(pet, summary))
    assert (replayed.differences, replayed.after.summary.tools) == ((), ("search_memories",))


async def test_a_turn_in_a_place_a_document_and_a_task_are_as_they_were(pet, recorded, tmp_path):
    (tmp_path / "tea.md").write_text("# Tea\n\nJasmine tea is steeped for three minutes.\n")
    await pet.documents.add_files([tmp_path / "tea.md"])
    task = Call("update_task", {"id": None, "description": "call Leo", "status": "open"})
    told = {"content": "Ana loves tea.", "subjects": ["ana"], "ttl": None, "importance": 0.7}
    traces = [
        await recorded(task, answer("On your list."), said="remind me to call Leo"),
        await recorded(Call("search_knowledge", {"query": "jasmine tea"}), answer("Three minutes.")),
        await recorded(Call("get_recent_memories", {"limit": 5}), answer("Call Leo."), said="what to do?"),
        await recorded(answer("Nice.", told), said="I love tea", author="Ana", place="acme"),
        await recorded(answer("Tea."), said="which tea?", author="Ana", place="acme"),
    ]
    assert "Ana loves tea." in str(traces[-1].root)
    await pet.documents.remove(str(tmp_path / "tea.md"))
    for memory in await pet.memories.list(user="ana"):
        await pet.memories.forget(memory.id, user="ana")
    assert [(await replay(pet, TraceWithJobs(trace))).differences for trace in traces] == [()] * len(traces)


async def test_a_live_model_changes_nothing_and_reads_todays_memory(pet, recorded, server, rows):
    task = Call("update_task", {"id": None, "description": "call Leo", "status": "open"})
    trace = await recorded(task, answer("On your list."), said="remind me to call my dentist")
    tables = [row["name"] for row in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    before = {table: rows(f"SELECT * FROM {table}") for table in tables}
    other = Call("update_task", {"id": None, "description": "Call Leo today!", "status": "open"})
    found = answer("Leo is.", {"content": "Ana has a dentist"})
    server.script([other, Call("search_memories", {"query": "dentist"})], found)
    replayed = await replay(pet, await whole(pet, trace), ReplayOptions(fork=1))
    assert '"action": "made"' in server.asked[-1].results[0], "as its next recorded call was answered"
    assert '"kind": "summary"' in server.asked[-1].results[1], "nothing is recorded of it"
    assert replayed.after.root.data["reply"]["message"] == "Leo is."
    assert {table: rows(f"SELECT * FROM {table}") for table in tables} == before


async def test_from_a_call_on_another_model_is_asked(pet, recorded, server):
    trace = await recorded()
    live = ScriptedModel([[assistant_message('{"message": "Rex, of course.", "memories": []}')]])
    server.script(answer("Rex it is."))

    given = await replay(pet, await whole(pet, trace), ReplayOptions(fork=2, live=live))
    of_settings = await replay(pet, await whole(pet, trace), ReplayOptions(fork=3))

    assert given.after.root.data["reply"]["message"] == "Rex, of course."
    assert given.after.summary.tools == ("search_memories",)
    assert not given.same
    assert of_settings.after.root.data["reply"]["message"] == "Rex it is."
    assert len(server.asked[-1].results) == 2, "the results of the recorded calls"
    with pytest.raises(BadInput, match="3 calls; fork at one of them"):
        await replay(pet, await whole(pet, trace), ReplayOptions(fork=4))


async def test_what_cannot_be_replayed_is_refused(pet, recorded):
    await recorded()
    trace = await recorded()
    [job, *_] = await pet.traces.after(trace.id, pet.clock())
    empty = replace(trace, root=Span("turn"))
    early = replace(trace, root=Span("turn", data=trace.root.data))
    for refused, why in (
        (job, "only turns are replayed"),
        (replace(trace, summary=replace(trace.summary, status="killed")), "has not ended"),
        (empty, "HACHI_TRACE_CONTENT was none"),
        (replace(empty, summary=replace(trace.summary, user=None)), "the user was anonymous"),
        (early, "it ended before its context was built"),
        (replace(trace, root=Span("turn", data={"incoming": {"text": ""}})), "it ended before its context"),
    ):
        with pytest.raises(BadInput, match=why):
            await replay(pet, TraceWithJobs(refused))
        with pytest.raises(BadInput, match=why):
            await make_test(TraceWithJobs(refused))
