"""OpenAI's Responses API, with OpenAI's own client."""

import json
from typing import Any

import pytest
import pytest_asyncio
from scripted_server import Call, ScriptedServer, answer

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a town",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
}


@pytest_asyncio.fixture(loop_scope="session")
async def client(scripted: Any, request: Any) -> Any:
    _, secret = await scripted.key(user_of(request))
    async with scripted.openai(secret) as made:
        yield made


def user_of(request: Any) -> str:
    return str(request.node.name).replace("[", "-").strip("]")


async def test_it_answers_and_remembers(client, scripted, model, request) -> None:
    model.script(Call("remember", {"content": "Ana rows", "subjects": ["ana"]}), answer("Enjoy the water."))
    made = await client.responses.create(
        model="hachi", input="I row", instructions="Be brief.", temperature=0.3, max_output_tokens=900
    )
    assert (made.status, made.output_text) == ("completed", "Enjoy the water.")
    assert [one.content for one in await scripted.pet.memories.list(user=user_of(request))] == ["Ana rows"]
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens > 0
    asked = model.asked[-1]
    assert "> Be brief." in asked.system
    assert asked.json["temperature"] == 0.3
    assert len(scripted.messages(user_of(request))) == 2


async def test_a_stream_has_the_events_of_the_api(client: Any, model: ScriptedServer) -> None:
    model.script(answer("Enjoy the water, Ana."))
    events = [event async for event in await client.responses.create(model="m", input="I row", stream=True)]
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == events[-1].response.output_text == "Enjoy the water, Ana."
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert {events[0].response.id, events[-1].response.id} == {events[0].response.id}
    model.script(answer("Once more."))
    async with client.responses.stream(model="m", input="again") as helper:
        assert (await helper.get_final_response()).output_text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_clients_tool_is_called(client: Any, model: ScriptedServer, stream: bool) -> None:
    model.script(Call("weather", {"town": "Lyon"}, id="call_of_weather"), answer("Sunny."))
    items: list[Any] = [{"role": "user", "content": "how is Lyon?"}]
    made = client.responses.create(model="m", input=items, tools=[WEATHER], stream=stream)
    if stream:
        events = [event async for event in await made]
        [done] = [event for event in events if event.type == "response.function_call_arguments.done"]
        response = events[-1].response
        assert json.loads(done.arguments) == {"town": "Lyon"}
    else:
        response = await made
    [call] = response.output
    assert (call.type, call.name, call.call_id) == ("function_call", "weather", "call_of_weather")
    items += [call.model_dump(), {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    done = await client.responses.create(model="m", input=items, tools=[WEATHER])
    assert done.output_text == "Sunny."
    assert model.asked[-1].results == ["sunny"]


async def test_a_response_that_calls_tools_goes_on_by_its_id(client, scripted, model, request) -> None:
    model.script(answer("Hi."), Call("weather", {"town": "Lyon"}, id="call_1"))
    model.script(Call("weather", {"town": "Nice"}, id="call_2"), answer("Sunny in both."), answer("Yes."))

    async def go_on(after: Any, input: Any) -> Any:
        id = after and after.id
        return await client.responses.create(model="m", input=input, previous_response_id=id, tools=[WEATHER])

    def result(id: str, output: str) -> list[Any]:
        return [{"type": "function_call_output", "call_id": id, "output": output}]

    made = await go_on(await go_on(None, "hello"), "how are Lyon and Nice?")
    refused = {"input": "never mind", "previous_response_id": made.id}
    headers = await scripted.headers(user_of(request))
    missing = await scripted.client.post("/v1/responses", json=refused, headers=headers)
    assert (missing.status_code, "call_1" in missing.text) == (400, True)

    made = await go_on(await go_on(made, result("call_1", "sunny")), result("call_2", "sunny too"))
    assert made.output_text == "Sunny in both."
    assert model.asked[-1].results == ["sunny", "sunny too"]
    assert [text for _, text in model.asked[-1].conversation] == ["hello", "Hi.", "how are Lyon and Nice?"]
    kept = scripted.messages(user_of(request))
    assert [row["text"] for row in kept] == ["hello", "Hi.", "how are Lyon and Nice?", "Sunny in both."]
    assert {row["client_items"] for row in kept} == {None}  # kept only while they wait
    assert (await go_on(made, "sure?")).output_text == "Yes."


async def test_only_allowed_tools_are_offered_and_a_refusal_is_what_was_said(client, scripted, model) -> None:
    model.script(answer("Hm."), answer("Hm."))
    allowed = [{"type": "function", "name": "weather"}]
    choice: Any = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    refused = [{"type": "refusal", "refusal": "I cannot tell."}]
    items: Any = [{"role": "user", "content": "Where is Tia?"}, {"role": "assistant", "content": refused}]
    items.append({"role": "user", "content": "And Lyon?"})
    tools: Any = [WEATHER, WEATHER | {"name": "radio"}]
    await client.responses.create(model="m", input=items, tools=tools, tool_choice=choice)
    assert ("weather" in model.asked[-1].tools, "radio" in model.asked[-1].tools) == (True, False)
    assert ("assistant", "I cannot tell.") in model.asked[-1].conversation

    about = {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}
    functions = [{"type": "function", "function": {"name": name}} for name in ("weather", "radio")]
    said = [{"role": "assistant", "content": None, "refusal": "I cannot."}, {"role": "user", "content": "hi"}]
    body = {"messages": said, "tools": functions}
    body |= {"tool_choice": {"type": "allowed_tools", "allowed_tools": about}}
    await scripted.client.post("/v1/chat/completions", json=body, headers=await scripted.headers("ana"))
    asked = model.asked[-1]
    assert (asked.tools.keys(), asked.json["tool_choice"]) == ({"weather"}, "required")
    assert ("assistant", "I cannot.") in asked.conversation


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_model_sees_its_own_calls_again_that_came_before_a_clients(
    client: Any, model: ScriptedServer, stream: bool, by_id: bool
) -> None:
    row = {"content": "Ana rows in Lyon", "subjects": ["ana"]}
    model.script(Call("remember", row), Call("weather", {"town": "Lyon"}, id="c1"), answer("Sunny."))
    items: list[Any] = [{"role": "user", "content": "I row in Lyon; how is it?"}]

    async def create(**given: Any) -> Any:
        made = await client.responses.create(model="m", tools=[WEATHER], stream=stream, **given)
        return [event async for event in made][-1].response if stream else made

    made = await create(input=items)
    [call] = made.output
    result = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
    before = (
        {"previous_response_id": made.id, "input": []} if by_id else {"input": [*items, call.model_dump()]}
    )
    done = await create(**before | {"input": [*before["input"], result]})
    assert done.output_text == "Sunny."
    remembered, weather = model.asked[-1].results
    assert ("Ana rows in Lyon" in remembered, weather) == (True, "sunny")
    assert model.asked[-1].call_ids[1] == "c1"


async def test_a_conversation_goes_on_from_an_earlier_response_or_by_its_name(
    client: Any, scripted: Any, model: ScriptedServer
) -> None:
    model.script(*map(answer, ("Peru", "Lima", "Chile", "Yes.", "Hi.", "Again.")))
    first = await client.responses.create(model="m", input="Name a country")
    second = await client.responses.create(model="m", input="And its capital?", previous_response_id=first.id)
    assert [text for _, text in model.asked[-1].conversation] == [
        "Name a country",
        "Peru",
        "And its capital?",
    ]
    await client.responses.create(model="m", input="Another one!", previous_response_id=first.id)
    told = [text for _, text in model.asked[-1].conversation]
    assert told == ["Name a country", "Peru", "Another one!"]
    await client.responses.create(model="m", input="Sure?", previous_response_id=second.id)  # a fork
    told = [text for _, text in model.asked[-1].conversation]
    assert told == ["Name a country", "Peru", "And its capital?", "Lima", "Sure?"]
    for text in ("hello", "hello again"):
        made = await client.responses.create(model="m", input=text, conversation="work")
    assert made.conversation.id == "work"
    assert [text for _, text in model.asked[-1].conversation] == ["hello", "Hi.", "hello again"]

    headers = await scripted.headers("eve")
    body = {"input": "what did she say?", "previous_response_id": first.id}
    refused = await scripted.client.post("/v1/responses", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "previous_response_not_found")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"background": True}, "background"),
        ({"include": ["file_search_call.results"]}, "include"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [WEATHER | {"name": "a b"}]}, "tools"),
        ({"conversation": "c", "previous_response_id": "resp_1"}, "send no `conversation`"),
        ({"input": [{"content": "hello"}]}, "needs a role"),
        ({"input": [{"role": "system", "content": "hello"}]}, "no message of the user"),
    ],
)
async def test_what_cannot_be_done_is_refused(scripted: Any, given: Any, why: str) -> None:
    body = {"input": "hello"} | given
    refused = await scripted.client.post("/v1/responses", json=body, headers=await scripted.headers("ana"))
    assert (refused.status_code, why in refused.text) == (400, True), refused.text
