"""The loop over a real server: what each request carries, and what comes of wrong tool calls."""

import asyncio
import json
from typing import Any

import agents.tracing.processors
import agents.tracing.setup
import pytest
from agents import Usage as SdkUsage
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.tracing import set_trace_provider
from agents.tracing.provider import DefaultTraceProvider
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent
from scripted_server import Call, Fail, Refuse, Say, answer

from agent.models.choice.choose import disable_trace_export
from agent.turn.output.answer import ANSWER_SCHEMA
from agent.turn.output.parse import FALLBACK
from agent.types import Usage
from agent.types.client import ClientTool, ClientTurn
from prompts import read

TOOLS = {
    # name: (asked for, all)
    "search_memories": (set(), {"query", "subjects", "limit", "since", "until", "author", "kind"}),
    "get_recent_memories": (set(), {"limit"}),
    "search_knowledge": ({"query"}, {"query", "limit"}),
    "remember": (
        {"content", "subjects", "ttl"},
        {"content", "subjects", "ttl", "type", "importance", "replaces"},
    ),
    "update_task": ({"id", "description", "status"}, {"id", "description", "status", "due"}),
}


async def test_the_model_is_offered_exactly_the_five_tools_and_nothing_depends_on_what_a_provider_keeps(
    pet_at, way, server
):
    pet = await pet_at(way)
    server.script(Call("get_recent_memories", {"limit": 3}), answer("Hi."), answer("Hi again."))

    reply, _ = await way.ask(pet, "hi", user="ana")
    await way.ask(pet, "hi", user="ana")

    assert reply.usage == Usage(input=20, output=10), "of both calls"
    offered = server.asked[0].tools
    assert offered.keys() == TOOLS.keys()
    for name, (asked_for, known) in TOOLS.items():
        parameters = offered[name]["parameters"]
        assert (set(parameters.get("required", ())), set(parameters["properties"])) == (asked_for, known)
        assert parameters["type"] == "object"
        assert offered[name]["description"]
    assert len(server.asked) == 3
    for asked in server.asked:
        # OpenAI aside, servers of chat completions keep nothing, and some refuse the field.
        assert asked.json.get("store") is (False if way.api == "responses" else None)
        assert not {"previous_response_id", "conversation", "prompt", "metadata"} & asked.json.keys()
        assert asked.json["model"] == "tiny"
        assert asked.json.get("stream", False) is way.streamed
        assert asked.headers["authorization"] == "Bearer sk-test-4f1d2c"
    assert server.asked[0].system.startswith(read("persona"))
    assert server.asked[2].call_ids == [], "an earlier turn's calls are its own"


async def test_the_form_of_the_answer_is_asked_for_as_the_server_bears_it(pet_at, way, server):
    for structured, kind in (("schema", "json_schema"), ("object", "json_object")):
        pet = await pet_at(way, structured=structured)
        server.script(Call("get_recent_memories", {"limit": 1}), answer("Hi."))
        reply, _ = await way.ask(pet, "hi", user="ana")
        assert reply.message == "Hi."
        assert [(asked.form or {}).get("type") for asked in server.asked[-2:]] == [kind] * 2

    form = server.asked[0].form or {}
    described = form.get("json_schema", form)
    assert described["strict"] is True
    assert described["schema"]["required"] == ["message", "memories", "forget"]


WRONG = [
    (Call("search_knowledge", {}), "query"),
    (Call("search_memories", "tea, please"), "one JSON object"),
    (Call("search_memories", '{"query":' * 5_000 + "1" + "}" * 5_000), "one JSON object"),
    (Call("forget", '{"query":' * 5_000 + "1" + "}" * 5_000), "search_memories, get_recent_memories"),
    (Call("update_task", {"id": "t-77", "description": "x", "status": "done"}), "t-77"),
]


async def test_a_wrong_call_comes_back_to_the_model_saying_what_is_wrong_and_a_broken_one_is_mended(
    pet_at, one_streamed, server
):
    pet = await pet_at(one_streamed)
    await pet.remember("Ana likes tea", user="ana")
    for call, told in WRONG:
        server.script(call, answer("Sorry, again."))
        reply, _ = await one_streamed.ask(pet, "hm", user="ana")
        [made] = reply.tools
        [result] = server.asked[-1].results
        assert (made.name, made.ok, made.result) == (call.name, False, result)
        assert told in json.loads(result)["error"]
        assert "Traceback" not in result
        assert reply.message == "Sorry, again."
    for written in ('{"query": "tea", "limit": 3', '```json\n{"query": "tea"}\n```'):
        server.script(Call("search_memories", written), answer("Tea!"))
        reply, _ = await one_streamed.ask(pet, "what do I drink?", user="ana")
        assert reply.tools[0].ok
        assert "Ana likes tea" in server.asked[-1].results[0]


async def test_an_echo_of_the_prompt_is_neither_shown_nor_kept_and_a_loop_ends(pet_at, way, server):
    pet = await pet_at(way)
    rule = next(line for line in read("assistant").splitlines() if len(line.split()) > 12).lstrip("- ")
    server.script(
        answer(rule),
        answer(
            "I love bees. " * 40, {"content": "Ana keeps bees", "subjects": ["ana", rule]}, {"content": rule}
        ),
        Call("remember", {"content": rule, "subjects": ["ana"], "ttl": None}),
        answer("Hi."),
    )
    echoed, shown = await way.ask(pet, "hello", user="ana")
    looped, again = await way.ask(pet, "I keep bees", user="ana")
    called, _ = await way.ask(pet, "hm", user="ana")
    assert (echoed.message, looped.message.rstrip(".")) == (FALLBACK, "I love bees")
    assert (rule in shown, again.startswith(looped.message)) == (False, True)
    assert not called.tools[0].ok
    await pet.settle()
    page = await pet.memories.list(user="ana")
    assert [(one.content, one.subjects) for one in page] == [("Ana keeps bees", ("ana",))]


async def test_a_refusal_is_said_an_empty_answer_is_a_reply_and_call_ids_are_told_apart(pet_at, way, server):
    pet = await pet_at(way)
    for said, shows in ((Refuse("I would rather not."), "I would rather not."), (Say(""), FALLBACK)):
        server.script(said)
        reply, shown = await way.ask(pet, "do something bad", user="ana")
        assert reply.message == shown == shows

    tea, milk = (Call("search_memories", {"query": word}, id="") for word in ("tea", "milk"))
    again = Call("search_memories", {"query": "cake"}, id="call_a")
    server.script([tea, milk], [again, again], again, answer("Nothing."))
    reply, _ = await way.ask(pet, "what do I have?", user="ana")
    assert reply.message == "Nothing."
    assert [call.ok for call in reply.tools] == [True] * 5
    ids = server.asked[-1].call_ids
    assert len(ids) == len(set(ids)) == len(server.asked[-1].results) == 5
    assert all(ids)


async def test_tools_called_together_run_in_the_order_of_the_calls(pet_at, first_way, server, monkeypatch):
    pet = await pet_at(first_way)
    await pet.remember("Ana likes jasmine tea", user="ana")
    search = pet.components.recall.look

    async def slowly(*arguments: Any, **named: Any) -> Any:
        for _ in range(50):
            await asyncio.sleep(0)
        return await search(*arguments, **named)

    monkeypatch.setattr(pet.components.recall, "look", slowly)
    server.script(
        [
            Call("search_memories", {"query": "tea"}),
            Call("get_recent_memories", {"limit": "many"}),
            Call("get_recent_memories", {"limit": 1}),
        ],
        answer("Done."),
    )

    reply, _ = await first_way.ask(pet, "what do I drink?", user="ana")

    assert [(call.name, call.ok) for call in reply.tools] == [
        ("search_memories", True),
        ("get_recent_memories", False),
        ("get_recent_memories", True),
    ]
    assert [call.result for call in reply.tools] == server.asked[1].results
    found = [["jasmine" in call.result for call in reply.tools]]
    assert found == [[True, False, False]], "the first call brings it, however long it takes"


async def test_a_call_that_is_tried_again_does_not_cost_the_turn_a_call(pet_at, some_way, server):
    pet = await pet_at(some_way, max_turns=3)
    look = Call("get_recent_memories", {"limit": 1})
    server.script(look, Fail(503), Fail(429), look, answer("Found."))

    reply, _ = await some_way.ask(pet, "hi", user="ana")

    assert (reply.message, reply.calls) == ("Found.", 3)
    choices = [asked.json.get("tool_choice") for asked in server.asked]
    assert [choice == "none" for choice in choices] == [False] * 4 + [True]


async def test_where_one_call_was_not_counted_no_number_is_told_for_all(open_pet):
    looking = ModelStep([function_call("get_recent_memories", {"limit": 1}, call_id="1")], usage=SdkUsage())
    counted = SdkUsage(requests=1, input_tokens=9, output_tokens=2, total_tokens=11)
    model = ScriptedModel([looking, ModelStep([assistant_message(answer("Here.").text)], usage=counted)])
    pet = await open_pet(given=model)

    reply = await pet.respond("hi", user="ana")

    assert (reply.calls, reply.usage) == (2, Usage())


async def test_a_model_that_streams_its_items_and_then_an_empty_response_is_understood(open_pet):
    def completed(item: Any) -> list[Any]:
        whole = Response.model_construct(id="r", output=[], usage=None, status="completed")
        return [
            ResponseOutputItemDoneEvent.model_construct(type="response.output_item.done", item=item),
            ResponseCompletedEvent.model_construct(type="response.completed", response=whole),
        ]

    looking = function_call("get_recent_memories", {"limit": 1}, call_id="")
    said = assistant_message(answer("Here.").text)
    model = ScriptedModel(
        [ModelStep.stream(completed(looking)), ModelStep.stream(completed(looking)), [said]]
    )
    pet = await open_pet(given=model, max_turns=3)

    stream = pet.stream("hi", user="ana")
    shown = "".join([piece async for piece in stream])

    assert shown == stream.reply.message == "Here."
    assert len(stream.reply.tools) == 2


def test_the_answer_schema_is_strict_and_not_enforced():
    schema = ANSWER_SCHEMA.json_schema()
    memory = schema["properties"]["memories"]["items"]
    for part in (schema, memory):
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False
    assert list(schema["properties"]) == ["message", "memories", "forget"]
    assert list(memory["properties"]) == ["content", "subjects", "ttl", "type", "importance", "replaces"]
    assert memory["properties"]["type"]["enum"] == ["fact", "preference", "insight"]
    assert not ANSWER_SCHEMA.is_plain_text()
    assert ANSWER_SCHEMA.validate_json("no JSON at all") == "no JSON at all"


async def test_no_trace_leaves_and_the_exporter_is_never_built(pet_at, first_way, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-4f1d2c")
    monkeypatch.setattr(agents.tracing.setup, "GLOBAL_TRACE_PROVIDER", None)
    for made in ("_global_exporter", "_global_processor"):
        monkeypatch.setattr(agents.tracing.processors, made, None)
    pet = await pet_at(first_way)
    server.script(Call("search_memories", {"query": "tea"}), answer("Hi."))

    await first_way.ask(pet, "hi", user="ana")

    assert agents.tracing.processors._global_exporter is None
    assert agents.tracing.processors._global_processor is None
    assert {asked.path for asked in server.asked} <= {"/v1/responses", "/v1/chat/completions"}


def test_a_trace_provider_that_the_program_has_set_is_left_alone(monkeypatch):
    monkeypatch.setattr(agents.tracing.setup, "GLOBAL_TRACE_PROVIDER", None)
    theirs = DefaultTraceProvider()
    set_trace_provider(theirs)

    disable_trace_export()

    assert agents.tracing.setup.GLOBAL_TRACE_PROVIDER is theirs


async def test_what_is_said_beside_tool_calls_stands_on_lines_of_its_own(pet_at, way, server):
    pet = await pet_at(way)
    aside = "Let me look that up in what you told me before. " * 12
    server.script(Say(aside, (Call("search_memories", {"query": "tea"}),)), answer("a cup of green tea"))

    reply, shown = await way.ask(pet, "what do I drink?", user="ana")

    assert reply.message == "a cup of green tea"
    if way.streamed:
        before, _, after = shown.rpartition("\n")
        assert after == reply.message
        assert aside.startswith(before)
        assert before
    else:
        assert shown == reply.message


async def test_a_text_that_turns_out_otherwise_than_it_began_is_followed_by_the_answer(
    pet_at, one_streamed, server
):
    pet = await pet_at(one_streamed)
    draft = "The weather in Lyon will be fine all week, with some wind from the south in the evening. " * 6
    server.script(Say(draft + answer("It will be fine.").text))

    reply, shown = await one_streamed.ask(pet, "how will the weather be?", user="ana")

    assert shown.endswith(reply.message)
    assert "memories" not in shown
    assert "{" not in shown


async def test_a_call_of_a_tool_that_there_is_not_names_those_that_there_are(open_pet):
    odd = function_call("search\ud83d", {}, call_id="a")
    pet = await open_pet(given=ScriptedModel([[odd], [assistant_message("Sorry.")]]))
    weather = ClientTool("weather", "The weather", {"type": "object", "properties": {}})

    reply = await pet.respond("hello", user="ana", client=ClientTurn((), tools=(weather,)))

    assert reply.message == "Sorry."
    [called] = reply.tools
    assert not called.ok
    assert "there are search_memories" in called.result
    assert "update_task, weather" in called.result


@pytest.mark.parametrize("choice", ["required", "weather"])
async def test_a_clients_tool_that_is_required_may_be_called_in_the_only_call(
    pet_at, some_way, server, choice
):
    pet = await pet_at(some_way, max_turns=1)
    weather = ClientTool("weather", "The weather", {"type": "object", "properties": {}})
    server.script(Call("weather", {}))

    reply, _ = await some_way.ask(
        pet, "hello", user="ana", client=ClientTurn((), tools=(weather,), tool_choice=choice)
    )

    assert [call.name for call in reply.client_calls] == ["weather"]
    assert len(server.asked) == 1
