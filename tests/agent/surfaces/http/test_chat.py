"""Talking by OpenAI's API, with OpenAI's own client against a real server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import openai
import pytest
from scripted_server import Call, Drop, Fail, Hang, Say, ScriptedServer, answer

from agent.surfaces.http import chat

Serve = Callable[..., Awaitable[Any]]
Rows = Callable[..., list[dict[str, Any]]]


def client_of(site: Any, key: str, **more: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0, timeout=20, **more)


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def scripted(serve: Serve, server: ScriptedServer, **settings: Any) -> Any:
    return await serve(
        openai_base_url=server.url, openai_api_key="sk-1", model="tiny", api="chat", **settings
    )


async def test_the_python_client_talks_and_is_remembered(serve: Serve) -> None:
    site = await serve()
    _, secret = await site.key("mickael")
    async with client_of(site, secret) as client:
        told = await client.chat.completions.create(
            model="hachi", messages=said("my sister Lucie is allergic to nuts")
        )
        asked = await client.chat.completions.create(
            model="gpt-5", messages=said("what is my sister allergic to?"), temperature=0.1, seed=7
        )
        models = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("hachi")

    assert told.object == "chat.completion"
    assert told.choices[0].finish_reason == "stop"
    assert told.choices[0].message.role == "assistant"
    assert told.usage.total_tokens == told.usage.prompt_tokens + told.usage.completion_tokens > 0
    [learned] = [memory for memory in told.memories if memory["use"] == "learned"]
    assert (learned["content"], learned["action"]) == ("my sister Lucie is allergic to nuts", "add")
    assert "nuts" in (asked.choices[0].message.content or "")
    assert learned["id"] in [m["id"] for m in asked.memories if m["use"] == "used"]
    assert asked.trace_id.startswith("trace_")
    assert models == ["hachi"]
    assert one.id == "hachi"


async def test_the_synchronous_client_talks_too(serve: Serve) -> None:
    site = await serve()
    _, secret = await site.key("mickael")

    def talk() -> str:
        with openai.OpenAI(base_url=f"{site.url}/v1", api_key=secret, max_retries=0) as client:
            whole = client.chat.completions.create(model="hachi", messages=said("I love rowing"))
            stream = client.chat.completions.create(
                model="hachi", messages=said("what do I love?"), stream=True
            )
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
            return f"{whole.choices[0].message.content} {''.join(pieces)}"

    assert "rowing" in await asyncio.to_thread(talk)


async def test_a_stream_brings_pieces_then_memories_then_usage(serve: Serve, server: ScriptedServer) -> None:
    site = await scripted(serve, server)
    await site.pet.remember("Ana keeps two ferrets", user="ana", subjects=["ana"], importance=0.4)
    server.script(
        Call("search_memories", {"query": "ferrets"}),
        Call("remember", {"content": "Ana likes her ferrets to be counted", "subjects": ["ana"]}),
        answer("You have two ferrets, Ana."),
    )
    _, secret = await site.key("ana")
    async with client_of(site, secret) as client:
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
    assert [(m["content"], m["use"]) for m in talk[-1].memories] == [
        ("Ana keeps two ferrets", "used"),
        ("Ana likes her ferrets to be counted", "learned"),
    ]
    assert usage.choices == []
    counted = (usage.usage.prompt_tokens, usage.usage.completion_tokens, usage.usage.total_tokens)
    assert counted == (30, 15, 45)  # by the model's server, for three calls
    assert len({chunk.id for chunk in chunks}) == 1


async def test_two_chats_are_two_conversations_and_one_person(serve: Serve, rows: Rows) -> None:
    site = await serve()
    for user in ("ana", "ben"):
        headers = await site.headers(user) | {"x-openwebui-user-name": "Ana%20B%C3%A9"}
        for chat_id in ("1", "a/b:c"):
            await site.say("hello", headers | {"x-openwebui-chat-id": chat_id})
    await site.say("hello", await site.headers("ana"))

    authors = rows("SELECT author FROM messages WHERE role = 'user' AND author != 'ana'")
    assert {row["author"] for row in authors} == {"Ana Bé"}
    found = rows("SELECT id, user_id FROM conversations")
    assert len(found) == 5
    assert [row["user_id"] for row in found if row["id"].endswith(":ana")] == ["ana"] * 3
    assert {row["conversation_id"] for row in rows("SELECT conversation_id FROM messages")} == {
        row["id"] for row in found
    }


async def test_a_request_that_says_nothing_usable_is_told_why(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers("ana")
    bodies: list[tuple[dict[str, Any], str | None]] = [
        ({"messages": []}, "messages"),
        ({}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"role": "robot", "content": "hello"}]}, "messages.0.role"),
        ({"messages": [{"role": "system", "content": "be nice"}]}, None),
        ({"messages": [{"role": "user", "content": "   "}]}, None),
        ({"messages": [{"role": "user"}]}, None),
        ({"messages": [{"role": "user", "content": "hello"}], "n": 2}, None),
        ({"messages": [{"role": "user", "content": "x" * 100_001}]}, None),
        ({"messages": [{"role": "user", "content": "hello"}], "stream": "perhaps"}, "stream"),
    ]
    for body, param in bodies:
        answered = await site.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answered.status_code == 400, body
        error = answered.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"]
        assert param is None or error["param"].startswith(param), error


async def test_the_client_raises_what_it_knows(serve: Serve, server: ScriptedServer) -> None:
    site = await scripted(serve, server, model_retries=0)
    _, secret = await site.key("ana")
    async with client_of(site, "hachi-wrong") as client:
        with pytest.raises(openai.AuthenticationError, match="no such key"):
            await client.models.list()
    async with client_of(site, secret) as client:
        with pytest.raises(openai.BadRequestError, match="n must be 1"):
            await client.chat.completions.create(model="hachi", messages=said("hello"), n=2)
        server.script(Fail(500))
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(model="hachi", messages=said("hello"))
    assert failed.value.status_code == 503
    assert failed.value.code == "model_unavailable"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_failed_is_not_repeated_by_the_client(
    serve: Serve, server: ScriptedServer, rows: Rows, stream: bool
) -> None:
    site = await scripted(serve, server, model_retries=0)
    _, secret = await site.key("ana")
    server.script(*[Fail(500)] * 5)
    async with openai.AsyncOpenAI(base_url=f"{site.url}/v1", api_key=secret) as client:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="hachi", messages=said("hello"), stream=stream)
    assert len(rows("SELECT text FROM messages")) == 1


async def test_what_the_models_server_said_is_for_who_runs_this_one(
    serve: Serve, server: ScriptedServer
) -> None:
    site = await scripted(serve, server, model_retries=0)
    for admin in (False, True):
        server.script(Fail(401))
        failed = await site.say("hello", await site.headers("ana", admin=admin))
        assert failed.status_code == 502
        message = failed.json()["error"]["message"]
        assert "trace_" in message
        assert ("OPENAI_API_KEY" in message) == admin


async def test_a_stream_that_breaks_midway_raises_in_the_client(
    serve: Serve, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await scripted(serve, server, model_retries=0)
    server.script(Drop('{"message": "Once upon a time there was a house", "memories": []}', pieces=5))
    _, secret = await site.key("ana")
    shown: list[str] = []

    async def read(stream: Any) -> None:
        async for chunk in stream:
            shown.append(chunk.choices[0].delta.content or "")

    async with client_of(site, secret) as client:
        stream = await client.chat.completions.create(model="hachi", messages=said("tell"), stream=True)
        with pytest.raises(openai.APIError, match="language model"):
            await read(stream)
    assert "".join(shown).startswith("Once")


async def test_a_fault_after_a_long_silence_is_told_in_the_stream(
    serve: Serve, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "FIRST_PIECE_TIMEOUT", 0.0)
    site = await scripted(serve, server, model_retries=0)
    server.script(Fail(500))
    answered = await site.say("hello", await site.headers("ana"), stream=True)
    assert answered.status_code == 200
    [error] = [json.loads(line[6:]) for line in answered.text.splitlines() if '"error"' in line]
    assert error["error"]["code"] == "model_unavailable"
    assert "[DONE]" not in answered.text


async def test_what_breaks_inside_a_stream_is_told_without_what_it_was(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "FIRST_PIECE_TIMEOUT", 0.0)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(chat.Completion, "piece", broken)
    site = await serve()
    answered = await site.say("hello", await site.headers("ana"), stream=True)
    assert '"internal_error"' in answered.text
    assert "secret" not in answered.text


CLIENTS_OWN = [
    {"role": "system", "content": "Answer like a pirate."},
    {"role": "user", "content": "I sail on Sundays"},
    {"role": "assistant", "content": "Fair winds!"},
]


@pytest.mark.parametrize("user", ["ana", None])
async def test_what_a_client_says_was_said_before_reaches_the_model_where_we_know_nothing(
    serve: Serve, server: ScriptedServer, rows: Rows, user: str | None
) -> None:
    site = await scripted(serve, server)
    server.script(answer("On Sundays, arr."))
    body = {"messages": [*CLIENTS_OWN, *said("when do I sail?")]}
    answered = await site.client.post("/v1/chat/completions", json=body, headers=await site.headers(user))

    assert answered.json()["choices"][0]["message"]["content"] == "On Sundays, arr."
    [asked] = server.asked
    assert [text for _, text in asked.conversation] == ["I sail on Sundays", "Fair winds!", "when do I sail?"]
    assert "> Answer like a pirate." in asked.system
    kept = [row["text"] for row in rows("SELECT text FROM messages WHERE role = 'user'")]
    assert kept == (["when do I sail?"] if user else [])


async def test_who_leaves_stops_the_turn(serve: Serve, server: ScriptedServer) -> None:
    site = await scripted(serve, server)
    server.script(Hang('{"message": "Once upon a time there was", "memories": []}', pieces=5))
    body = {"messages": said("tell"), "stream": True}
    headers = await site.headers("ana")
    async with site.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answered:
        async for line in answered.aiter_lines():
            if "Once" in line:
                break
    async with asyncio.timeout(10):
        await server.left.wait()


async def test_a_title_is_made_and_nobody_said_it(serve: Serve, server: ScriptedServer, rows: Rows) -> None:
    """What Open WebUI asks for beside the conversation."""
    site = await scripted(serve, server, model_retries=0)
    task = (
        '### Task:\nGenerate a title.\n### Output:\nJSON format: { "title": "…" }\n'
        "### Chat History:\n<chat_history>\nUSER: I broke my shoulder\n</chat_history>"
    )
    server.script(*[Say('{"title": "A broken shoulder"}')] * 2)
    headers = await site.headers("ana")
    whole = (await site.say(task, headers)).json()
    streamed = await site.say(task, headers, stream=True)

    assert whole["choices"][0]["message"]["content"] == '{"title": "A broken shoulder"}'
    assert whole["memories"] == []
    assert "A broken shoulder" in streamed.text
    assert streamed.text.rstrip().endswith("[DONE]")
    server.script(*[Fail(500)] * 3)
    assert (await site.say(task, headers)).json()["error"]["code"] == "model_unavailable"
    assert rows("SELECT * FROM messages") == []
    assert all(not asked.tools and asked.system == "" for asked in server.asked)


async def test_what_breaks_inside_is_one_line_and_the_server_lives(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = await serve()
    headers = await site.headers("ana")

    async def broken(*_: Any) -> Any:
        raise RuntimeError("a secret path")

    with monkeypatch.context() as patch:
        patch.setattr(chat, "_facts_shown", broken)
        failed = await site.say("hello", headers)
    assert failed.status_code == 500
    assert failed.json()["error"]["code"] == "internal_error"
    assert "secret" not in failed.text
    assert (await site.say("hello", headers)).status_code == 200


async def test_many_at_once_each_get_their_own_answer(serve: Serve) -> None:
    site = await serve()
    headers = await site.headers()

    async def ask(number: int) -> httpx2.Response:
        mine = headers | {"x-openwebui-user-id": f"u{number}"}
        return await site.say(f"I own {number} boats", mine)

    answers = await asyncio.gather(*(ask(number) for number in range(16)))
    assert {answer.status_code for answer in answers} == {200}
    for number in (0, 7, 15):
        [memory] = await site.pet.memories(user=f"u{number}")
        assert f"{number} boats" in memory.content
