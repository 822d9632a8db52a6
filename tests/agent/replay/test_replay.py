"""A replayed turn is the same if nothing has changed, else the first difference is named."""

from dataclasses import replace

import pytest
from agents.testing import ScriptedModel, assistant_message
from scripted_server import Call, Fail, Say, answer

import prompts
from agent import Companion
from agent.errors import BadInput, ModelUnavailable
from agent.replay.pytest_file import make_test
from agent.replay.replay import ReplayOptions, replay
from agent.tracing import setup
from agent.tracing.compare import Difference
from agent.tracing.trace import Trace
from agent.turn import prompt
from memory.audience import PRIVATE
from memory.process.spans import Span
from memory.search import recall
from tools import registry
from tools.memories import search_memories
from tools.registry import Tool

DENTIST = (Call("search_memories", {"query": "dentist"}), answer("Leo."))


async def first_difference(pet: Companion, trace: Trace) -> Difference:
    return (await replay(pet, trace)).differences[0]


async def the_dentist(pet: Companion) -> str:
    return next(m.id for m in await pet.memories(user="ana") if "dentist" in m.content)


async def test_what_was_said_later_changes_nothing_and_nothing_is_written(pet, recorded, server, rows):
    trace = await recorded()
    later = {"content": "Ana loves her cat Mitzi more", "subjects": ["ana"], "ttl": None}
    await recorded(Call("remember", later), answer("Noted."), said="I love my cat Mitzi more")
    await pet.set_context("language", "French", user="ana")
    tables = [row["name"] for row in rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    before, asked = {table: rows(f"SELECT * FROM {table}") for table in tables}, len(server.asked)
    replayed = await replay(pet, trace)
    assert replayed.same
    assert replayed.differences == ()
    assert len(server.asked) == asked
    assert {table: rows(f"SELECT * FROM {table}") for table in tables} == before


async def test_a_fact_that_was_replaced_later_is_found_again(pet, recorded):
    trace = await recorded(*DENTIST, said="my dentist?")
    changed = {"content": "Ana's dentist is Bob", "subjects": ["ana"], "replaces": await the_dentist(pet)}
    await recorded(Call("remember", changed | {"ttl": None}), answer("Noted."), said="my dentist is Bob now")
    assert "Ana's dentist is Leo" not in {m.content for m in await pet.memories(user="ana")}
    assert (await replay(pet, trace)).same


async def test_a_memory_that_was_corrected_or_deleted_by_hand_is_the_first_difference(pet, recorded):
    trace = await recorded(*DENTIST, said="who is he?")
    await pet.update_memory(await the_dentist(pet), "Ana's dentist is Bob", user="ana")
    corrected = await first_difference(pet, trace)
    await pet.delete_memory(await the_dentist(pet), user="ana")
    deleted = await first_difference(pet, trace)
    assert (corrected.where, corrected.what) == ("search_memories, result", "differs")
    assert "Leo" in corrected.before
    assert "Bob" in corrected.after
    assert deleted.where == "search_memories, result"
    assert "dentist is" not in deleted.after


async def test_a_changed_prompt_schema_or_code_is_named(pet, recorded, monkeypatch):
    trace = await recorded(*DENTIST, said="who is he?")
    read = prompts.read

    with monkeypatch.context() as patch:
        patch.setattr(prompt, "read", lambda name: "You are a cat." if name == "persona" else read(name))
        persona = await first_difference(pet, trace)
    with monkeypatch.context() as patch:
        changed = dict(Tool(search_memories).schema) | {"description": "new"}
        patch.setitem(vars(registry.TOOLS[0]), "schema", changed)  # the instance's value hides the property
        setup.made_by.cache_clear()
        schema = await first_difference(pet, trace)
    setup.made_by.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(recall, "rank", lambda *args, **more: [])
        code = await first_difference(pet, trace)

    assert (persona.where, persona.after) == ("call 1, system message, persona", "You are a cat.")
    assert schema.where == "call 1, tools, schema of search_memories"
    assert code.where == "search_memories, result"
    assert ("Leo" in code.before, "nothing was found" in code.after) == (True, True)


async def test_what_went_wrong_goes_wrong_again(pet, failing, recorded):
    retried = await recorded(Fail(500, "for a moment"), answer("Here I am."), said="are you there?")
    malformed = await recorded(Say("Just words."), said="hm")
    failed = await failing(pet)
    assert (retried.summary.calls, malformed.summary.status) == (2, "malformed")
    assert (await replay(pet, retried)).same
    assert (await replay(pet, malformed)).same
    replayed = await replay(pet, failed)
    assert replayed.same
    assert replayed.after.summary.error == failed.summary.error


async def test_a_model_that_was_down_is_down_again(pet_at, first_way):
    pet = await pet_at(first_way, openai_base_url="http://127.0.0.1:9/v1", model_retries=0)
    with pytest.raises(ModelUnavailable) as failed:
        await pet.respond("hello", user="ana")
    await pet.settle()
    trace = await pet.traces.get(str(failed.value.trace_id), pet.clock())
    assert (await replay(pet, trace)).same


async def test_a_turn_in_a_place_sees_what_that_place_sees(pet, recorded):
    await pet.remember("The team loves jasmine tea", user="ben", place="acme/general")
    search = Call("search_memories", {"query": "what is loved"})
    trace = await recorded(search, answer("Tea."), place="acme/general")
    replayed = await replay(pet, trace)
    assert replayed.same
    [span] = replayed.after.spans("search")
    found = [one["content"] for one in span.data["candidates"] if "left_out" not in one]
    assert found == ["The team loves jasmine tea"]


async def test_what_others_told_of_the_speaker_is_before_the_model_again(pet, recorded, clock):
    told = {"content": "Ana loves tea.", "subjects": ["ana"], "ttl": None, "importance": 0.7}
    await recorded(answer("Nice.", told), said="Ana loves tea", user="ben", author="Ben", place="acme")
    trace = await recorded(answer("Tea."), said="which tea?", author="Ana", place="acme")
    assert "Ben said: “Ana loves tea.”" in str(trace.root)

    replayed = await replay(pet, trace)

    assert replayed.same
    assert "Ben said: “Ana loves tea.”" in str(replayed.after.root)


async def test_tools_can_repeat_their_results(pet, recorded):
    trace = await recorded()
    for memory in await pet.memories(user="ana"):
        await pet.delete_memory(memory.id, user="ana")
    repeated = await replay(pet, trace, ReplayOptions(tools="recorded"))
    assert "result" not in {difference.where.rpartition(", ")[2] for difference in repeated.differences}
    assert list(repeated.after.spans("search", "decision")) == []


async def test_from_a_call_on_another_model_is_asked(pet, recorded, server):
    trace = await recorded()
    live = ScriptedModel([[assistant_message('{"message": "Rex, of course.", "memories": []}')]])
    server.script(answer("Rex it is."))

    given = await replay(pet, trace, ReplayOptions(fork=2, live=live))
    of_settings = await replay(pet, trace, ReplayOptions(fork=3))

    assert given.after.root.data["reply"]["message"] == "Rex, of course."
    assert given.after.summary.tools == ("search_memories",)
    assert not given.same
    assert of_settings.after.root.data["reply"]["message"] == "Rex it is."
    assert len(server.asked[-1].results) == 2, "the results of the recorded calls"
    with pytest.raises(BadInput, match="3 calls; fork at one of them"):
        await replay(pet, trace, ReplayOptions(fork=4))


async def test_documents_are_searched_again(pet, recorded, tmp_path):
    (tmp_path / "tea.md").write_text("# Tea\n\nJasmine tea is steeped for three minutes.\n")
    await pet.add_knowledge([tmp_path / "tea.md"])
    search = Call("search_knowledge", {"query": "how long is jasmine tea steeped"})
    trace = await recorded(search, answer("Three minutes."))
    assert "three minutes" in next(trace.spans("tool")).data["result"]
    assert (await replay(pet, trace)).same
    await pet.remove_knowledge(str(tmp_path / "tea.md"))
    assert (await first_difference(pet, trace)).where == "search_knowledge, result"


async def test_tasks_are_as_they_were(pet, recorded):
    def update(id: str | None, status: str) -> Call:
        return Call("update_task", {"id": id, "description": "call Leo", "status": status})

    await recorded(update(None, "open"), answer("On your list."), said="remind me to call Leo")
    trace = await recorded(Call("get_recent_memories", {"limit": 5}), answer("Call Leo."), said="what to do?")
    [task] = await pet.services.tasks.list("ana", PRIVATE)
    await recorded(update(task.id, "done"), answer("Done."), said="done with Leo")

    assert (await replay(pet, trace)).same


async def test_what_cannot_be_replayed_is_refused(pet, recorded):
    await recorded()
    trace = await recorded()
    [job, *_] = await pet.traces.after(trace.id, pet.clock())
    empty = replace(trace, root=Span("turn"))
    for refused, why in (
        (job, "replay the turn that it belongs to"),
        (replace(trace, summary=replace(trace.summary, status="killed")), "has not ended"),
        (empty, "HACHI_TRACE_CONTENT was none"),
        (replace(empty, summary=replace(trace.summary, user=None)), "the user was anonymous"),
    ):
        with pytest.raises(BadInput, match=why):
            await replay(pet, refused)
        with pytest.raises(BadInput, match=why):
            await make_test(pet, refused)
