"""OpenAI's client for Node against `hachi serve`, each a process of its own, with a scripted model behind."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, Drop, Fail, Hang, Say, ScriptedServer, answer

HERE = Path(__file__).parent / "node"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.skipif(
        NODE is None, reason="there is no node; install Node.js 20 or newer, then: make test-clients"
    ),
    pytest.mark.skipif(
        not (HERE / "node_modules" / "openai").is_dir(), reason="to install the client: make test-clients"
    ),
]

Serve = Callable[..., Any]


@pytest.fixture
def serve(serve: Serve) -> Serve:
    """`async with serve(**settings) as ask`; `await ask(task)` is what the client saw."""

    @asynccontextmanager
    async def running(**settings: str) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
        async with serve(**settings) as ask:
            yield lambda task: ask(str(NODE), str(HERE / "client.mjs"), task)

    return running


async def test_it_talks_and_hears_which_memories_were_used(serve: Serve, server: ScriptedServer) -> None:
    rows = {"content": "Ana rows on Fridays", "subjects": ["ana"]}
    server.script(Call("remember", rows), answer("Enjoy the water, Ana."))
    async with serve() as ask:
        saw = await ask("whole")

    told = saw["answer"]
    assert told["object"] == "chat.completion"
    assert told["choices"][0]["message"] == {"role": "assistant", "content": "Enjoy the water, Ana."}
    assert told["choices"][0]["finish_reason"] == "stop"
    usage = told["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert told["memories"] == []  # the new one answered nothing
    assert told["trace_id"].startswith("trace_")
    assert (saw["models"], saw["one"]) == (["hachi"], "hachi")


async def test_it_reads_the_stream_to_its_memories_and_its_usage(
    serve: Serve, server: ScriptedServer
) -> None:
    rows = {"content": "Ana rows on Fridays", "subjects": ["ana"]}
    server.script(Call("remember", rows), answer("On Fridays, Ana."), answer("As I said: on Fridays."))
    async with serve() as ask:
        *talk, usage = (await ask("stream"))["chunks"]
        helped = await ask("helper")

    pieces = [chunk["choices"][0]["delta"].get("content") or "" for chunk in talk]
    assert "".join(pieces) == "On Fridays, Ana."
    assert len([piece for piece in pieces if piece]) > 1
    assert [chunk["choices"][0]["finish_reason"] for chunk in talk] == [None] * (len(talk) - 1) + ["stop"]
    assert [chunk.get("memories") for chunk in talk] == [None] * (len(talk) - 1) + [[]]
    assert (usage["choices"], usage["usage"]["completion_tokens"] > 0) == ([], True)
    assert len({chunk["id"] for chunk in [*talk, usage]}) == 1
    assert helped == {"text": "As I said: on Fridays.", "final": "As I said: on Fridays."}


async def test_it_raises_the_errors_that_it_has_and_repeats_no_turn(
    serve: Serve, server: ScriptedServer, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    long = '{"message": "Once upon a time there was a house", "memories": []}'
    server.script(Fail(500), Fail(500), Drop(long, pieces=5))
    async with serve() as ask:
        saw = await ask("errors")

    shown = {
        what: tuple(error[name] for name in ("name", "status", "code", "sent")) for what, error in saw.items()
    }
    assert shown == {
        "key": ("AuthenticationError", 401, "invalid_api_key", 1),
        "wrong": ("BadRequestError", 400, "bad_input", 1),
        "empty": ("BadRequestError", 400, "too_short", 1),
        "nowhere": ("NotFoundError", 404, "not_found", 1),
        "model": ("InternalServerError", 503, "model_unavailable", 1),
        "streamed": ("InternalServerError", 503, "model_unavailable", 1),
        "cut": ("APIError", None, "model_unavailable", 1),
    }
    assert saw["key"]["message"] == "401 no such key"
    assert saw["empty"]["param"] == "messages"
    told = rows("SELECT text FROM messages WHERE role = 'user' ORDER BY seq")
    assert [row["text"] for row in told] == ["hello", "tell"]  # what was said again is stored once


async def test_it_waits_as_long_as_it_is_told_to(serve: Serve) -> None:
    async with serve(HACHI_HTTP_RATE="30") as ask:
        saw = await ask("patience")
    assert saw["asked"] >= 31
    assert saw["sent"] == saw["asked"] + 1
    shown = tuple(saw["impatient"][name] for name in ("name", "status", "code", "sent"))
    assert shown == ("RateLimitError", 429, "rate_limit_exceeded", 1)


async def test_when_it_leaves_the_model_is_left_too(serve: Serve, server: ScriptedServer) -> None:
    server.script(Hang('{"message": "Once upon a time there was", "memories": []}', pieces=5))
    async with serve() as ask:
        assert await ask("leave") == {"left": True}
        async with asyncio.timeout(60):
            await server.left.wait()


async def test_its_tools_are_called_and_its_history_is_the_conversation(
    serve: Serve, server: ScriptedServer, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    server.script(Call("weather", {"town": "Lyon"}), answer("Sunny in Lyon."), Say('{"town": "Lyon"}'))
    server.script(*map(answer, ("Peru", "Chile", "Santiago", "Enjoy the water.")))
    async with serve() as ask:
        saw = await ask("turns")
    assert saw["tools"] == {"called": "weather", "text": "Sunny in Lyon."}
    assert saw["shaped"] == {"town": "Lyon"}
    assert saw["edited"] == ["Peru", "Chile", "Santiago"]
    assert saw["response"] == "Enjoy the water."
    replaced = rows("SELECT text FROM messages WHERE id IN (SELECT row_id FROM hidden)")
    assert [row["text"] for row in replaced] == ["Peru"]
