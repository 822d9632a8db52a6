"""Talking by OpenAI's API, with OpenAI's own client against a real server."""

import asyncio
import json
from typing import Any

import openai
import pytest
from scripted_server import Call, Drop, Fail, Hang, Raw, ScriptedServer, answer

from agent.surfaces.http.openai_api import chat


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def test_the_python_client_talks_and_is_remembered(site: Any) -> None:
    _, secret = await site.key("mickael")
    async with site.openai(secret) as client:
        told = await client.chat.completions.create(
            model="hachi", messages=said("my sister Lucie is allergic to nuts")
        )
        asked = await client.chat.completions.create(
            model="gpt-5", messages=said("what is my sister allergic to?"), temperature=0.1, seed=7
        )
        models = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("hachi")
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-5")

    assert (told.object, told.choices[0].finish_reason) == ("chat.completion", "stop")
    assert told.choices[0].message.role == "assistant"
    assert told.usage.total_tokens == told.usage.prompt_tokens + told.usage.completion_tokens > 0
    assert "nuts" in (asked.choices[0].message.content or "")
    assert ("my sister Lucie is allergic to nuts", "used") in [
        (m["content"], m["use"]) for m in asked.memories
    ]
    assert asked.trace_id.startswith("trace_")
    assert [*models, one.id] == ["hachi", "hachi"]


async def test_a_stream_brings_pieces_then_memories_then_usage(scripted: Any, model: ScriptedServer) -> None:
    await scripted.pet.remember("Ana keeps two ferrets", user="ana", subjects=["ana"], importance=0.4)
    model.script(
        Call("search_memories", {"query": "ferrets"}),
        Call("remember", {"content": "Ana likes her ferrets to be counted", "subjects": ["ana"]}),
        answer("You have two ferrets, Ana."),
    )
    _, secret = await scripted.key("ana")
    async with scripted.openai(secret) as client:
        stream = await client.chat.completions.create(
            model="hachi",
            messages=said("how many ferrets do I have?"),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]

    *talk, usage = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in talk) == "You have two ferrets, Ana."
    assert len([chunk for chunk in talk if chunk.choices[0].delta.content]) > 1
    assert talk[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in talk] == [None] * (len(talk) - 1) + ["stop"]
    assert [(m["content"], m["use"]) for m in talk[-1].memories] == [("Ana keeps two ferrets", "used")]
    assert usage.choices == []
    counted = (usage.usage.prompt_tokens, usage.usage.completion_tokens, usage.usage.total_tokens)
    assert counted == (30, 15, 45)  # by the model's server, for three calls
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_client_raises_typed_errors_and_repeats_no_turn(scripted, model) -> None:
    _, secret = await scripted.key("dan")
    async with scripted.openai("hachi-wrong") as client:
        with pytest.raises(openai.AuthenticationError, match="no such key"):
            await client.models.list()
    async with openai.AsyncOpenAI(base_url=f"{scripted.url}/v1", api_key=secret) as client:
        with pytest.raises(openai.BadRequestError, match="n must be 1"):
            await client.chat.completions.create(model="hachi", messages=said("hello"), n=2)
        for stream in (False, True):
            model.script(Fail(500))
            with pytest.raises(openai.InternalServerError) as failed:
                await client.chat.completions.create(model="hachi", messages=said("hi"), stream=stream)
            assert (failed.value.status_code, failed.value.code) == (503, "model_unavailable")
    assert len(scripted.messages("dan")) == 1  # what is said again after a failure
    for admin in (False, True):  # only an operator reads what the model's server said
        model.script(Fail(401))
        refused = await scripted.say("hello", await scripted.headers("dan", admin=admin))
        message = refused.json()["error"]["message"]
        assert (refused.status_code, "trace_" in message) == (502, True)
        assert ("OPENAI_API_KEY" in message) == admin


async def test_a_stream_that_breaks_midway_raises_in_the_client(scripted: Any, model: ScriptedServer) -> None:
    model.script(Drop('{"message": "Once upon a time there was a house", "memories": []}', pieces=5))
    _, secret = await scripted.key("eve")
    shown: list[str] = []

    async def read(stream: Any) -> None:
        async for chunk in stream:
            shown.append(chunk.choices[0].delta.content or "")

    async with scripted.openai(secret) as client:
        stream = await client.chat.completions.create(model="hachi", messages=said("tell"), stream=True)
        with pytest.raises(openai.APIError, match="language model"):
            await read(stream)
    assert "".join(shown).startswith("Once")


async def test_a_late_error_is_told_in_the_stream_without_details(scripted, model, monkeypatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(chat, "FIRST_PIECE_TIMEOUT", 0.0)
    headers = await scripted.headers("fay")
    for step, code in ((Fail(500), "model_unavailable"), (answer("Hello."), "internal_error")):
        model.script(step)
        answered = await scripted.say("hello", headers, stream=True)
        assert answered.status_code == 200
        [error] = [json.loads(line[6:]) for line in answered.text.splitlines() if '"error"' in line]
        assert error["error"]["code"] == code
        assert "[DONE]" not in answered.text
        assert "secret" not in answered.text
        monkeypatch.setattr(chat.Completion, "piece", broken)


CLIENTS_OWN = [
    {"role": "system", "content": "Answer like a pirate."},
    {"role": "user", "content": "I sail on Sundays"},
    {"role": "assistant", "content": "Fair winds!"},
]


@pytest.mark.parametrize("user", ["gil", None])
async def test_the_clients_own_messages_reach_the_model_in_a_new_conversation(scripted, model, user) -> None:
    model.script(answer("On Sundays, arr."))
    body = {"messages": [*CLIENTS_OWN, *said("when do I sail?")]}
    headers = await scripted.headers(user)
    answered = await scripted.client.post("/v1/chat/completions", json=body, headers=headers)
    assert answered.json()["choices"][0]["message"]["content"] == "On Sundays, arr."
    asked = model.asked[-1]
    assert [text for _, text in asked.conversation] == ["I sail on Sundays", "Fair winds!", "when do I sail?"]
    assert "> Answer like a pirate." in asked.system
    stored = [row["text"] for row in scripted.messages(user or "") if row["role"] == "user"]
    assert stored == (["when do I sail?"] if user else [])


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_what_the_model_thinks_is_streamed_apart_from_the_answer(scripted, model, field) -> None:
    deltas = [{field: "Ana has "}, {field: "ferrets."}, {"content": '{"message": "Two.", "memories": []}'}]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    model.script(Raw(events.encode(), "text/event-stream"))
    streamed = await scripted.say("how many?", await scripted.headers(f"tess-{field}"), stream=True)
    lines = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in line["choices"]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Ana has ferrets."
    assert "".join(delta.get("content", "") for delta in deltas) == "Two."
    assert [row["text"] for row in scripted.messages(f"tess-{field}")] == ["how many?", "Two."]


async def test_a_client_that_leaves_stops_the_turn(serve: Any, server: ScriptedServer) -> None:
    site = await serve(openai_base_url=server.url, openai_api_key="sk-1", model="tiny", api="chat")
    server.script(Hang('{"message": "Once upon a time there was", "memories": []}', pieces=5))
    body = {"messages": said("tell"), "stream": True}
    headers = await site.headers("ana")
    async with site.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answered:
        async for line in answered.aiter_lines():
            if "Once" in line:
                break
    async with asyncio.timeout(60):
        await server.left.wait()


async def test_an_answer_says_how_to_go_on_in_its_conversation(scripted: Any, model: ScriptedServer) -> None:
    headers = await scripted.headers("may")
    model.script(*map(answer, ("Peru", "Lima", "Quito", "Hm.", "Hm.")))
    first = (await scripted.say("Name a country", headers)).json()
    assert "send the next one alone, with this `conversation`" in first["note"]
    second = (await scripted.say("Its capital?", headers, conversation=first["conversation"])).json()
    assert [text for _, text in model.asked[-1].conversation] == ["Name a country", "Peru", "Its capital?"]
    assert (second["conversation"], "note" in second) == (first["conversation"], False)
    at = f"/api/sessions/{first['conversation']['id']}/memories"
    assert (await scripted.client.get(at, headers=headers)).json() == []
    streamed = await scripted.say("Name another", headers, conversation="Öl/1", stream=True)
    [end] = [json.loads(line[6:]) for line in streamed.text.splitlines() if '"stop"' in line]
    assert end["conversation"] == {"id": "Öl/1"}
    nobody = (await scripted.say("hello", await scripted.headers())).json()
    assert "conversation" not in nobody
