"""A recorded turn, taken again: the same where nothing has changed, else the first thing that has."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message
from scripted_server import Call, Fail, Say, ScriptedServer, answer

import prompts
from agent import Companion
from agent.errors import BadInput, ModelUnavailable
from agent.replay.replay import replay
from agent.replay.run import ReplayOptions
from agent.tracing.trace import Trace
from memory.search import recall
from tools import registry
from tools.memories import search_memories
from tools.registry import Tool

Recorded = Callable[..., Awaitable[Trace]]
Rows = Callable[..., list[dict[str, Any]]]


async def test_nothing_has_changed(pet: Companion, recorded: Recorded) -> None:
    replayed = await replay(pet, await recorded())

    assert replayed.differences == ()
    assert replayed.same


async def test_what_was_said_later_changes_nothing(pet: Companion, recorded: Recorded) -> None:
    first = await recorded()
    await recorded(
        Call("remember", {"content": "Ana loves her cat Mitzi more", "subjects": ["ana"], "ttl": None}),
        answer("Noted."),
        said="I love my cat Mitzi more",
    )

    assert (await replay(pet, first)).same


async def test_what_was_said_later_and_replaced_an_older_fact_gives_it_back(
    pet: Companion, recorded: Recorded
) -> None:
    first = await recorded(Call("search_memories", {"query": "dentist"}), answer("Leo."), said="my dentist?")
    dentist = next(m for m in await pet.memories(user="ana") if "dentist" in m.content)
    await recorded(
        Call(
            "remember",
            {"content": "Ana's dentist is Bob", "subjects": ["ana"], "ttl": None, "replaces": dentist.id},
        ),
        answer("Noted."),
        said="my dentist is Bob now",
    )
    assert "Ana's dentist is Leo" not in {m.content for m in await pet.memories(user="ana")}

    assert (await replay(pet, first)).same


async def test_a_memory_that_was_corrected_is_the_first_difference(
    pet: Companion, recorded: Recorded
) -> None:
    trace = await recorded(Call("search_memories", {"query": "dentist"}), answer("Leo."), said="who is he?")
    dentist = next(m for m in await pet.memories(user="ana") if "dentist" in m.content)
    await pet.update_memory(dentist.id, "Ana's dentist is Bob", user="ana")

    first, *_ = (await replay(pet, trace)).differences

    assert (first.where, first.what) == ("search_memories, result", "differs")
    assert "Leo" in first.before
    assert "Bob" in first.after


async def test_a_memory_that_was_deleted_is_the_first_difference(pet: Companion, recorded: Recorded) -> None:
    trace = await recorded(Call("search_memories", {"query": "dentist"}), answer("Leo."), said="who is he?")
    dentist = next(m for m in await pet.memories(user="ana") if "dentist" in m.content)
    await pet.delete_memory(dentist.id, user="ana")

    first, *_ = (await replay(pet, trace)).differences

    assert first.where == "search_memories, result"
    assert "Leo" not in first.after


async def test_a_changed_prompt_is_named_by_its_section(
    pet: Companion, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = await recorded()
    _change_prompt(monkeypatch, "persona", "You are a cat.")

    first, *_ = (await replay(pet, trace)).differences

    assert (first.where, first.after) == ("call 1, system message, persona", "You are a cat.")


async def test_a_changed_tool_schema_is_named(
    pet: Companion, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = await recorded()
    changed = dict(Tool(search_memories).schema) | {"description": "new"}
    monkeypatch.setitem(
        vars(registry.TOOLS[0]), "schema", changed
    )  # a cached property: the instance's own value counts
    from agent.tracing import setup

    setup.made_by.cache_clear()
    try:
        first, *_ = (await replay(pet, trace)).differences
    finally:
        setup.made_by.cache_clear()

    assert first.where == "call 1, tools, schema of search_memories"


async def test_changed_code_shows_in_what_a_tool_answers(
    pet: Companion, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = await recorded()
    monkeypatch.setattr(recall, "rank", lambda *args, **more: [])  # a search that finds nothing any more

    first, *_ = (await replay(pet, trace)).differences

    assert first.where == "search_memories, result"
    assert "Leo" in first.before
    assert "Leo" not in first.after


async def test_nothing_real_is_written_and_no_model_is_asked(
    pet: Companion, recorded: Recorded, server: ScriptedServer, rows: Rows
) -> None:
    trace = await recorded()
    tables = [row["name"] for row in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    before = {table: rows(f"SELECT * FROM {table}") for table in tables}
    asked = len(server.asked)

    await replay(pet, trace)

    assert len(server.asked) == asked
    assert {table: rows(f"SELECT * FROM {table}") for table in tables} == before


async def test_a_turn_that_failed_fails_the_same_way(
    pet: Companion, server: ScriptedServer, recorded: Recorded
) -> None:
    server.script(Fail(400, "no such thing"))
    with pytest.raises(Exception, match="400") as failed:
        await pet.respond("hello", user="ana")
    await pet.settle()
    trace = await pet.traces.get(failed.value.trace_id, pet.clock())  # type: ignore[attr-defined]

    replayed = await replay(pet, trace)

    assert replayed.same
    assert replayed.after.summary.status == "error"
    assert replayed.after.summary.error == trace.summary.error


async def test_a_call_that_failed_and_was_made_again_counts_once(pet: Companion, recorded: Recorded) -> None:
    trace = await recorded(Fail(500, "for a moment"), answer("Here I am."), said="are you there?")
    assert trace.summary.calls == 2

    assert (await replay(pet, trace)).same


async def test_a_turn_in_a_place_sees_what_that_place_sees(pet: Companion, recorded: Recorded) -> None:
    await pet.remember("The team loves jasmine tea", user="ben", place="acme/general")
    trace = await recorded(
        Call("search_memories", {"query": "what is loved"}), answer("Tea."), place="acme/general"
    )

    replayed = await replay(pet, trace)

    assert replayed.same
    [search] = replayed.after.spans("search")
    assert [one["content"] for one in search.data["candidates"] if "left_out" not in one] == [
        "The team loves jasmine tea"
    ]


async def test_an_answer_that_is_no_json_is_read_as_leniently_again(
    pet: Companion, recorded: Recorded
) -> None:
    trace = await recorded(Say("Just words."), said="hm")
    assert trace.summary.status == "malformed"

    assert (await replay(pet, trace)).same


async def test_recorded_tools_answer_as_they_did(pet: Companion, recorded: Recorded) -> None:
    trace = await recorded()
    for memory in await pet.memories(user="ana"):
        await pet.delete_memory(memory.id, user="ana")

    replayed = await replay(pet, trace, ReplayOptions(tools="recorded"))

    assert "result" not in {difference.where.rpartition(", ")[2] for difference in replayed.differences}


async def test_stubbed_tools_do_nothing(pet: Companion, recorded: Recorded) -> None:
    replayed = await replay(pet, await recorded(), ReplayOptions(tools="stub"))

    assert replayed.differences[0].where == "search_memories, result"
    assert list(replayed.after.spans("search", "decision")) == []


async def test_from_a_call_on_another_model_is_asked(pet: Companion, recorded: Recorded) -> None:
    trace = await recorded()
    live = ScriptedModel([[assistant_message('{"message": "Rex, of course.", "memories": []}')]])

    replayed = await replay(pet, trace, ReplayOptions(fork=2, live=live))

    assert replayed.after.root.data["reply"]["message"] == "Rex, of course."
    assert replayed.after.summary.tools == ("search_memories",)
    assert not replayed.same


async def test_from_a_call_on_the_model_of_the_settings_is_asked(
    pet: Companion, recorded: Recorded, server: ScriptedServer
) -> None:
    trace = await recorded()
    server.script(answer("Rex it is."))

    replayed = await replay(pet, trace, ReplayOptions(fork=3))

    assert replayed.after.root.data["reply"]["message"] == "Rex it is."
    assert len(server.asked[-1].results) == 2, "it saw what the recorded calls had brought"


async def test_a_fork_where_there_is_no_call_is_refused(pet: Companion, recorded: Recorded) -> None:
    with pytest.raises(BadInput, match="3 calls; fork at one of them"):
        await replay(pet, await recorded(), ReplayOptions(fork=4))


async def test_documents_are_looked_into_again(pet: Companion, recorded: Recorded, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nJasmine tea is steeped for three minutes.\n")
    await pet.add_knowledge([tmp_path / "tea.md"])
    trace = await recorded(
        Call("search_knowledge", {"query": "how long is jasmine tea steeped"}), answer("Three minutes.")
    )
    assert "three minutes" in next(trace.spans("tool")).data["result"]

    assert (await replay(pet, trace)).same

    await pet.remove_knowledge(str(tmp_path / "tea.md"))
    first, *_ = (await replay(pet, trace)).differences
    assert first.where == "search_knowledge, result"


async def test_tasks_are_as_they_were(pet: Companion, recorded: Recorded) -> None:
    await recorded(
        Call("update_task", {"id": None, "description": "call Leo", "status": "open"}),
        answer("On your list."),
        said="remind me to call Leo",
    )
    trace = await recorded(Call("get_recent_memories", {"limit": 5}), answer("Call Leo."), said="what to do?")
    [task] = await pet.services.tasks.list("ana", place=None)
    await recorded(
        Call("update_task", {"id": task.id, "description": "call Leo", "status": "done"}),
        answer("Done."),
        said="done with Leo",
    )

    assert (await replay(pet, trace)).same


async def test_what_the_person_wished_then_is_what_counts(pet: Companion, recorded: Recorded) -> None:
    trace = await recorded(answer("Hello!"), said="hello")
    await pet.set_context("language", "French", user="ana")

    assert (await replay(pet, trace)).same


async def test_a_turn_of_another_process_is_the_same_too(
    pet: Companion, recorded: Recorded, open_pet: Any
) -> None:
    """A process that has just begun finds the turn's own message in the index as it searches."""
    trace = await recorded()
    moved = replace(trace, summary=replace(trace.summary, process="elsewhere:1"))

    assert (await replay(pet, moved)).same


@pytest.mark.parametrize(
    ("content", "user", "why"),
    [("none", "ana", "HACHI_TRACE_CONTENT was none"), ("full", None, "the user was anonymous")],
)
async def test_where_nothing_is_held_of_what_was_said_there_is_nothing_to_take_again(
    content: str,
    user: str | None,
    why: str,
    pet_at: Callable[..., Awaitable[Companion]],
    first_way: Any,
    server: ScriptedServer,
) -> None:
    pet = await pet_at(first_way, trace_content=content)
    server.script(answer("Hello!"))
    reply = await pet.respond("hello", user=user)
    await pet.settle()

    with pytest.raises(BadInput, match=why):
        await replay(pet, await pet.traces.get(reply.trace_id, pet.clock()))


async def test_work_after_a_turn_and_what_has_not_ended_are_refused(
    pet: Companion, recorded: Recorded
) -> None:
    trace = await recorded()
    [work, *_] = await pet.traces.after(trace.id, pet.clock())

    with pytest.raises(BadInput, match="replay the turn that it belongs to"):
        await replay(pet, work)
    with pytest.raises(BadInput, match="has not ended"):
        await replay(pet, replace(trace, summary=replace(trace.summary, status="killed")))


async def test_a_model_that_was_away_is_away_again(
    pet_at: Callable[..., Awaitable[Companion]], first_way: Any
) -> None:
    pet = await pet_at(first_way, openai_base_url="http://127.0.0.1:9/v1", model_retries=0)
    with pytest.raises(ModelUnavailable) as failed:
        await pet.respond("hello", user="ana")
    await pet.settle()
    trace = await pet.traces.get(str(failed.value.trace_id), pet.clock())

    assert (await replay(pet, trace)).same


def _change_prompt(patch: pytest.MonkeyPatch, name: str, text: str) -> None:
    from agent.turn import prompt as context

    read = prompts.read
    patch.setattr(context, "read", lambda asked: text if asked == name else read(asked))
