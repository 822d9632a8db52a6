"""What a client asks of the answer is done, or refused."""

import json
from typing import Any

import pytest
from scripted_server import Call, Fail, Say, ScriptedServer, answer

from agent.surfaces.http.openai_api.completion import HOW_TO_BE_REMEMBERED

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
TOWN = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["town", "people"],
    "additionalProperties": False,
}
SHAPE = {"type": "json_schema", "json_schema": {"name": "town", "schema": TOWN, "strict": True}}


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def test_sampling_parameters_reach_the_model(scripted: Any, model: ScriptedServer) -> None:
    model.script(answer("Hm. END not this"))
    given = {"temperature": 0.2, "top_p": 0.9, "seed": 7, "max_completion_tokens": 5, "stop": ["END", "\n"]}
    answered = await scripted.say("hello", await scripted.headers("ana"), **given)
    asked = model.asked[-1].json
    assert {name: asked[name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
    }
    assert asked.get("max_tokens", asked.get("max_completion_tokens")) == 5
    assert "stop" not in asked  # it would end the JSON around the answer too
    [choice] = answered.json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hm. ", "length")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"logprobs": True}, "logprobs: no probabilities"),
        ({"modalities": ["text", "audio"], "audio": {"voice": "alloy"}}, "answers are text"),
        ({"functions": [{"name": "f"}]}, "send `tools`"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"temperature": 9}, "temperature"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "no tool 'x'"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "needs a `schema`"),
        ({"user": "eve"}, "names 'eve'"),
    ],
)
async def test_what_cannot_be_done_is_refused(scripted: Any, given: Any, why: str) -> None:
    answered = await scripted.say("refuse this", await scripted.headers("ana"), **given)
    assert (answered.status_code in (400, 403), why in answered.text) == (True, True), answered.text
    assert "refuse this" not in [row["text"] for row in scripted.messages("ana")]


async def test_a_parameter_that_the_model_refuses_is_the_clients(scripted, model) -> None:
    name = "min_p"
    model.script(Fail(400, f"Unsupported value: {name!r} does not support 0.2 with this model."))
    answered = await scripted.say("hello", await scripted.headers("ana"), **{name: 0.2})
    assert (answered.status_code, f"{name}: the model" in answered.text) == (400, True)


async def test_what_a_server_of_models_knows_is_passed_on_to_it_and_not_to_openai(
    scripted: Any, model: ScriptedServer, serve: Any
) -> None:
    theirs = {"top_k": 40, "min_p": 0.1, "think": False, "options": {"num_ctx": 4096}}
    headers = await scripted.headers("ana")
    model.script(answer("Hm."), answer("Hm."))
    await scripted.say("hello", headers, **theirs)
    body = {"input": "hello", "messages": [], "tools": [], **theirs}
    await scripted.client.post("/v1/responses", json=body, headers=headers)
    for asked in model.asked[-2:]:
        assert theirs.items() <= asked.json.items()
        assert ("user", "hello") in asked.conversation

    site = await serve(openai_api_key="sk-1", model="gpt-5.2", provider="openai", model_retries=0)
    refused = await site.say("hello", await site.headers("ana"), **theirs)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "top_k")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_clients_tool_is_called_and_its_result_answered(scripted, model, stream) -> None:
    user = f"tool{stream}"
    _, secret = await scripted.key(user)
    await scripted.pet.remember("Tia lives in Lyon", user=user, subjects=["tia"])
    model.script(
        Call("search_memories", {"query": "where does Tia live"}),
        Call("weather", {"town": "Lyon"}, id="call_of_weather"),
        answer("Sunny in Lyon."),
    )
    messages: list[Any] = said("how is the weather at Tia's?")
    async with scripted.openai(secret) as client:
        first = client.chat.completions.create
        if stream:
            chunks = [
                c async for c in await first(model="m", messages=messages, tools=[WEATHER], stream=True)
            ]
            [call] = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or ()]
            assert (call.index, chunks[-1].choices[0].finish_reason) == (0, "tool_calls")
        else:
            [choice] = (await first(model="m", messages=messages, tools=[WEATHER])).choices
            assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
            [call] = choice.message.tool_calls
        assert {"weather", "remember"} <= model.asked[-1].tools.keys()
        assert (call.id, call.function.name) == ("call_of_weather", "weather")
        assert json.loads(call.function.arguments) == {"town": "Lyon"}

        made = {"id": call.id, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [made]}]
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = await first(model="m", messages=messages, tools=[WEATHER])
    assert second.choices[0].message.content == "Sunny in Lyon."
    found, weather = model.asked[-1].results
    assert (json.loads(found).keys() >= {"memories"}, weather) == (True, "sunny")
    assert [row["text"] for row in scripted.messages(user)] == [messages[0]["content"], "Sunny in Lyon."]


async def test_tools_that_a_client_does_not_want_called_are_not_offered(scripted, model) -> None:
    model.script(answer("Hm."), answer("Hm."))
    headers = await scripted.headers("ana")
    await scripted.say("hello", headers, tools=[WEATHER], tool_choice="none")
    assert "weather" not in model.asked[-1].tools
    await scripted.say(
        "hello there", headers, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False
    )
    asked = model.asked[-1]
    assert (asked.json["tool_choice"], asked.json["parallel_tool_calls"]) == ("required", False)
    assert asked.tools.keys() == {"weather"}  # a call of one of Hachi's own would not be what is required


async def test_the_answer_has_the_form_that_is_asked_for(scripted, model: ScriptedServer) -> None:
    written = '{"message": {"town": "Lyon", "people": 500000}, "memories": []}'
    model.script(Say(written), Say(written))
    headers = await scripted.headers("ana")
    whole = (await scripted.say("Lyon?", headers, response_format=SHAPE)).json()
    assert json.loads(whole["choices"][0]["message"]["content"]) == {"town": "Lyon", "people": 500000}
    assert '"people": {"type": "integer"}' in model.asked[-1].context
    streamed = await scripted.say("Lyon?", headers, response_format={"type": "json_object"}, stream=True)
    assert '\\"people\\": 500000' in streamed.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_misses_the_form_is_asked_once_more(scripted, model, stream) -> None:
    headers = await scripted.headers("ana")
    model.script(Say('{"town": "Lyon"}'), Say('{"town": "Lyon", "people": 5}'))
    answered = await scripted.say("Lyon?", headers, response_format=SHAPE, stream=stream)
    assert (answered.status_code, '\\"people\\": 5' in answered.text) == (200, True)
    *_, told = model.asked[-1].conversation
    assert "'people' is a required property" in told[1]
    model.script(answer("Lyon has many people."), answer("Lyon has many people."))
    answered = await scripted.say("Lyon?", headers, response_format={"type": "json_object"}, stream=stream)
    assert (answered.status_code, "it is no JSON object" in answered.text) == (502, True)
    model.script(*2 * [Say('{"town": "Lyon", "people": "many"}')])
    answered = await scripted.say("Lyon?", headers, response_format=SHAPE, stream=stream)
    error = answered.json()["error"]  # of nobody's secrets: whoever asks may read which field it is
    assert (answered.status_code, error["param"], error["code"]) == (502, "response_format", "answer_misfit")
    assert "people: 'many' is not of type 'integer'" in error["message"]


async def test_a_form_that_the_server_enforces_is_streamed(serve: Any, server: ScriptedServer) -> None:
    given = {"openai_base_url": server.url, "model": "tiny", "api": "chat", "structured": "schema"}
    site = await serve(http_rate=0, **given)
    written = '{"town":  "Lyon", "people": 5}'
    server.script(Say(f" {written}\n"), Say('{"town": "Lyon"}'))
    streamed = await site.say("Lyon?", await site.headers("ana"), response_format=SHAPE, stream=True)
    chunks = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
    pieces = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert "".join(filter(None, pieces)) == written  # as the model wrote it
    assert len([piece for piece in pieces if piece]) > 2
    assert [row["text"] for row in site.messages("ana")] == ["Lyon?", written]
    cut = await site.say("Nice?", await site.headers("ana"), response_format=SHAPE, stream=True)
    assert "answer_misfit" in cut.text  # a part of it was shown
    server.script(Say(written, (Call("search_memories", {"query": "Oslo"}),)), Say(written))
    twice = await site.say("Oslo?", await site.headers("ana"), response_format=SHAPE, stream=True)
    assert '"error"' in twice.text  # not a second object behind the first


async def test_images_are_refused_where_the_model_sees_none_and_left_out_of_what_was_said(
    scripted: Any, model: ScriptedServer
) -> None:
    url = "data:image/png;base64,AAAA"
    picture = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"messages": [{"role": "user", "content": picture}]}
    headers = await scripted.headers("ana")
    refused = await scripted.client.post("/v1/chat/completions", json=body, headers=headers)
    assert (refused.status_code, "HACHI_IMAGES" in refused.text) == (400, True)
    old = {"messages": [*body["messages"], {"role": "assistant", "content": "A boat."}, *said("Is it blue?")]}
    model.script(answer("Yes."))
    await scripted.client.post("/v1/chat/completions", json=old, headers=headers)
    assert model.asked[-1].conversation[0] == ("user", "what is it?")


async def test_a_service_names_the_person_in_the_body(scripted: Any, model: ScriptedServer) -> None:
    headers = await scripted.headers()
    for name in ("user", "safety_identifier"):
        model.script(answer("Hello."))
        said = await scripted.say(f"by {name}", headers, **{name: "zoe"})
        assert said.json()["note"] != HOW_TO_BE_REMEMBERED
    assert [row["text"] for row in scripted.messages("zoe")][::2] == ["by user", "by safety_identifier"]
