"""Whole turns before servers that want their state back, cut answers, or have no end."""

import json
from typing import Any

import pytest
import strict_openai
from scripted_server import Asked, Call, Fail, Raw, Say, answer

from agent.errors import ModelRejected
from agent.turn import call_limit
from agent.turn.loop import CUT_SHORT

CALL = {"name": "search_memories", "arguments": '{"query":"tea"}', "status": "completed"}


def reasoning_answer(asked: Asked) -> Raw:
    """A reasoning item, with its content where that is asked for, and a call beside it."""
    kept = {"encrypted_content": "gAAAA"} if asked.json.get("include") else {}
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], **kept},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", **CALL},
    ]
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": items}
    if not asked.json.get("stream"):
        return Raw(json.dumps(response).encode(), "application/json")
    events = [{"type": "response.output_item.done", "item": item} for item in items]
    events += [{"type": "response.completed", "response": response}]
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return Raw("".join(lines).encode(), "text/event-stream")


@pytest.mark.parametrize("reasons", [True, False])
async def test_a_turn_with_a_tool_call_survives_a_provider_that_stores_nothing(
    pet_at, some_way, server, reasons
):
    pet = await pet_at(some_way, provider="openai", model_retries=0)
    server.refuses = lambda asked: strict_openai.refusal(asked, reasons=reasons)
    server.aside = lambda asked: (
        reasoning_answer(asked)
        if reasons and asked.path.endswith("/responses") and not asked.results
        else None
    )
    steps = [] if reasons and some_way.api == "responses" else [Call(CALL["name"], {"query": "tea"})]
    server.script(*steps, answer("Green tea."))
    reply, shown = await some_way.ask(pet, "which tea?", user="ana")
    assert reply.message == shown == "Green tea."
    assert reply.tools[0].name == "search_memories"
    if reasons and some_way.api == "responses":
        sent = [item for item in server.asked[-1].json["input"] if item.get("type") == "reasoning"]
        assert [item["encrypted_content"] for item in sent] == ["gAAAA"]


async def test_a_404_about_an_item_is_told_in_the_servers_words(pet_at, first_way, server):
    pet = await pet_at(first_way, model_retries=0)
    server.script(Fail(404, "Item with id rs_1 not found"))
    with pytest.raises(ModelRejected, match="answered 404: Item with id rs_1 not found") as raised:
        await pet.respond("which tea?", user="ana")
    assert "has no model" not in str(raised.value)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_what_was_written_before_an_answer_was_cut_is_the_reply(pet_at, way, server, finish):
    pet = await pet_at(way, model_retries=0)
    for _ in range(4):  # three failures of two people would open the breaker
        server.script(Say('{"message": "Once upon a time there was', finish=finish))
        reply, shown = await way.ask(pet, "a story, please", user="ana")
        assert reply.message == shown == "Once upon a time there was"
        assert reply.cut
        assert len(server.asked) == 1
        server.clear()
    await pet.components.recorder.flush()
    trace = await pet.traces.get("last", pet.clock())
    assert trace.summary.status == "ok"
    assert [call.data["finish"] for call in trace.spans("call")] == [finish]


async def test_an_answer_that_was_cut_before_its_first_word_says_so(pet_at, way, server):
    pet = await pet_at(way, model_retries=0, provider="openai")
    for name in ("ana", "ben", "ana", "ben"):
        server.script(Say("", finish="length"))
        reply, shown = await way.ask(pet, "a story, please", user=name)
        assert (reply.message, shown, reply.cut) == (CUT_SHORT, CUT_SHORT, True)


async def test_a_filtered_answer_is_the_providers_words_and_no_failure(pet_at, way, server):
    pet = await pet_at(way, model_retries=0)
    for name in ("ana", "ben", "ana", "ben"):
        server.script(Say("", finish="content_filter"))
        reply, shown = await way.ask(pet, "something bad", user=name)
        assert reply.message == shown
        assert "withheld" in shown


async def test_a_model_on_this_machine_has_a_limit_and_once_double_where_it_only_thought(pet_at, way, server):
    pet = await pet_at(way, model_retries=0)
    name = "max_tokens" if way.api == "chat" else "max_output_tokens"
    server.script(Say("", finish="length"), answer("There."), answer("And there."))
    assert (await way.ask(pet, "a story, please", user="ana"))[0].message == "There."
    assert (await way.ask(pet, "more", user="ana"))[0].message == "And there."
    assert [asked.json[name] for asked in server.asked] == [1_000, 2_000, 1_000]


async def test_the_limit_is_a_setting_and_others_have_none(pet_at, first_way, server):
    for settings, limit in (({"answer_tokens": 70}, 70), ({"answer_tokens": 0}, None), (ELSEWHERE, None)):
        server.clear()
        pet = await pet_at(first_way, **settings)
        server.script(answer("There."))
        await pet.respond("hello", user="ana")
        assert server.asked[0].json.get("max_output_tokens") == limit


ELSEWHERE: dict[str, Any] = {"provider": "mistral"}


async def test_consolidation_has_a_limit_of_its_own(pet_at, first_way, server):
    pet = await pet_at(first_way, consolidate="model")
    server.script(answer("There."))
    await pet.respond("I keep bees", user="ana")
    await pet.settle()
    assert [asked.json["max_output_tokens"] for asked in server.consolidations] == [1_500]


BOUNDS = {"maxLength", "maxItems"}


@pytest.mark.parametrize(("provider", "bounded"), [("llamacpp", True), ("openai", False), ("mistral", False)])
async def test_schemas_have_bounds_for_models_on_this_machine_alone(open_pet, server, provider, bounded):
    given = {"openai_base_url": server.url, "openai_api_key": "sk-1", "provider": provider, "model": "tiny"}
    pet = await open_pet(**given, max_turns=1, consolidate="model")
    server.script(answer("There."))
    await pet.respond("I keep bees", user="ana")
    await pet.settle()
    for asked in (server.asked[0], server.consolidations[0]):
        keys = set(json.dumps(asked.form).replace('"', " ").split())
        assert keys & BOUNDS == (BOUNDS if bounded else set())


async def test_what_follows_a_closed_message_is_not_waited_for(pet_at, streamed, server, monkeypatch):
    monkeypatch.setattr(call_limit, "REST_SECONDS", 0.2)
    pet = await pet_at(streamed, model_retries=0)
    fact = (
        '{"content": "Ana keeps bees", "subjects": ["ana"], "ttl": null, "type": "fact", "importance": 0.6}'
    )
    server.script(Say(f'{{"message": "Bees!", "memories": [{fact}, {{"content": "Ana', stays=True))
    reply, shown = await streamed.ask(pet, "I keep bees", user="ana")
    assert (reply.message, shown) == ("Bees!", "Bees!")
    await pet.settle()
    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana keeps bees"]
