"""Hachi before a real llama.cpp server: what holds whatever a model of 135 million parameters says."""

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from invariants import (
    SYNTAX,
    assert_finish_true,
    assert_isolated,
    assert_kept,
    assert_nothing_left,
    assert_reply,
)
from llamacpp_server import Llama, figures
from openai import AsyncOpenAI

from agent.errors import HachiError, ModelRejected, ModelUnavailable
from hachi import Companion, Reply

Open = Callable[..., Awaitable[Companion]]
Start = Callable[..., AbstractContextManager[Llama]]
SOON = 15.0
"""Seconds within which an error is told."""
TOLD = (
    "Hi! My code word is zanzibar, and my sister Ana lives in Lyon.",
    "Where does my sister live?",
    "We go climbing on Sunday.",
)


async def streamed(pet: Companion, text: str, **who: Any) -> tuple[Reply, str, float]:
    """Return the reply, what was shown, and the seconds until the first of it."""
    began, first, shown = time.monotonic(), 0.0, ""
    stream = pet.stream(text, **who)
    async for piece in stream:
        first = first or time.monotonic() - began
        shown += piece
    return stream.reply, shown, first


async def test_two_people_talk_streamed_and_not(server: Llama, open_at: Open) -> None:
    pet = await open_at(server, structured="none", consolidate="off")
    for number, text in enumerate(TOLD):
        if number % 2:
            reply, shown, _ = await streamed(pet, text, user="lea", author="Lea", settle=True)
            assert_reply(reply, shown)
        else:
            assert_reply(reply := await pet.respond(text, user="lea", author="Lea", settle=True))
        assert_finish_true(reply, server.exchanges[-1])
    assert_reply(await pet.respond("קוראים לי דנה, מה שלומך?", user="dana", author="Dana", settle=True))
    await assert_kept(pet, "lea", TOLD)
    await assert_kept(pet, "dana", ["קוראים לי דנה, מה שלומך?"])
    await assert_nothing_left(pet)
    assert_isolated(server.exchanges, "zanzibar", "Lea")


async def test_with_a_schema_answers_end_by_themselves(server: Llama, open_at: Open) -> None:
    pet = await open_at(server, structured="schema", answer_tokens=160, consolidate="off")
    ends = []
    for number, text in enumerate(("I'm allergic to peanuts.", "Hello!", 'Say {"message": "hi"} in JSON.')):
        reply = await pet.respond(text, user="ben", author="Ben", settle=True)
        assert_reply(reply)
        assert_finish_true(reply, server.exchanges[-1])
        assert reply.forget is None, "nobody asked"
        ends.append(server.exchanges[-1].finish)
        await assert_kept(pet, "ben", [text])
        assert number < 3
    assert "stop" in ends


async def test_a_talk_is_consolidated(server: Llama, open_at: Open) -> None:
    pet = await open_at(server)
    said = "I moved from Paris to Berlin and I must call the dentist."
    assert_reply(await pet.respond(said, user="mia", author="Mia", settle=True))
    await assert_nothing_left(pet)
    await assert_kept(pet, "mia", [said])
    asked = [one for one in server.exchanges if "new_facts" in one.prompt]
    assert said in asked[0].prompt
    if any(one.finish == "stop" for one in asked):
        assert (await pet.conversations.export(user="mia"))["summaries"]


@pytest.mark.parametrize("template", ["tools_after_system.jinja", "tools_before_system.jinja"])
async def test_a_plain_turn_evaluates_at_most_700_tokens(start: Start, open_at: Open, template: str) -> None:
    turns = 9
    with start(template=template, n_ctx=6144, n_predict=24) as server:
        pet = await open_at(server, consolidate="off", answer_tokens=24, max_turns=1)
        firsts = []
        for number in range(turns):
            text = f"{number}: {TOLD[number % 3]}"
            reply, shown, first = await streamed(pet, text, user="lea", author="Lea")
            assert_reply(reply, shown)
            firsts.append(first)
        evaluated = [one.timings["prompt_n"] for one in server.exchanges if one.asked.get("tools")]
    cut = 7
    plain = [tokens for turn, tokens in enumerate(evaluated) if turn not in (0, cut)]
    figures(f"tokens evaluated in a plain turn, {template}", plain, "tokens")
    figures(f"  in the turn that cuts a block off, {template}", [evaluated[cut]], "tokens")
    figures(f"  seconds to the first text, {template}", firsts[1:], "s")
    assert sorted(plain)[-1] <= 700
    assert evaluated[cut] <= 1_400


async def test_five_people_share_one_slot(server: Llama, open_at: Open) -> None:
    pet = await open_at(server, consolidate="off", answer_tokens=16, structured="none")
    people = ("ana", "ben", "cleo", "dan", "eve")

    replies = await asyncio.gather(
        *(pet.respond(f"The word of {name} is {name}-{name}.", user=name, author=name) for name in people)
    )

    for name, reply in zip(people, replies, strict=True):
        assert_reply(reply)
        await assert_kept(pet, name, [f"The word of {name} is {name}-{name}."])
        assert_isolated(server.exchanges, f"{name}-{name}", name)


async def test_a_talk_that_outgrows_the_window_goes_on(start: Start, open_at: Open) -> None:
    with start(n_ctx=1536, n_predict=16) as server:
        pet = await open_at(server, consolidate="off", answer_tokens=16, structured="none")
        said = [f"Look: {f'error {n} in line {n}; ' * 40}" for n in (17, 18)] + ["And now?"]
        for text in said:
            assert_reply(await pet.respond(text, user="lea", author="Lea"))
        await assert_kept(pet, "lea", [text.strip() for text in said])


async def test_a_window_too_small_for_the_rules_is_answered_or_told(start: Start, open_at: Open) -> None:
    with start(n_ctx=512, n_predict=16) as server:
        pet = await open_at(server, consolidate="off", answer_tokens=16, structured="none")
        [said] = await asyncio.gather(pet.respond("hello", user="lea"), return_exceptions=True)
        if isinstance(said, Reply):
            assert_reply(said)
        else:
            assert isinstance(said, ModelRejected)
            assert re.search("context|window|tokens", str(said))
            assert "\n" not in str(said)
        await assert_kept(pet, "lea", ["hello"])


async def test_a_server_killed_in_mid_stream_is_told_and_may_come_back(start: Start, open_at: Open) -> None:
    with start(n_predict=-1) as server:
        pet = await open_at(server, consolidate="off", answer_tokens=300, model_retries=0, structured="none")
        server.answering.clear()
        running = asyncio.create_task(streamed(pet, "Tell me a long story.", user="lea", author="Lea"))
        await asyncio.to_thread(server.answering.wait, 200)
        server.kill()
        began = time.monotonic()
        with pytest.raises(ModelUnavailable) as raised:
            await running
        assert time.monotonic() - began < SOON
        assert "\n" not in str(raised.value)
        await assert_kept(pet, "lea", ["Tell me a long story."])
        await asyncio.to_thread(server.start)
        reply = await pet.respond("Are you back? Yes or no.", user="lea", author="Lea")
        assert_reply(reply)


async def test_a_wrong_key_is_told(start: Start, open_at: Open) -> None:
    with start(api_keys=["right"], n_ctx=512) as server:
        pet = await open_at(server, openai_api_key="wrong", consolidate="off")
        began = time.monotonic()
        with pytest.raises(ModelRejected, match=r"(?i)key"):
            await pet.respond("hello", user="lea")
        assert time.monotonic() - began < SOON
        await assert_kept(pet, "lea", ["hello"])


def hachi(server: Llama, home: Path, *command: str) -> dict[str, Any]:
    """What starts a command of Hachi's with this server."""
    told = {"HACHI_HOME": str(home), "OPENAI_BASE_URL": server.url, "HACHI_MODEL": "smol"}
    told |= {"HACHI_PROVIDER": "llamacpp", "HACHI_CONSOLIDATE": "off", "HACHI_EMBEDDER": "bundled"}
    told |= {"HACHI_ANSWER_TOKENS": "24", "HACHI_STRUCTURED": "none"}
    told |= {"HACHI_MODEL_TIMEOUT": "300"}
    code = "import sys; from agent.surfaces.cli import main; sys.exit(main())"
    others = {name: value for name, value in os.environ.items() if not name.startswith(("HACHI_", "OPENAI_"))}
    return {"args": (sys.executable, "-c", code, *command), "env": others | told}


async def test_openais_client_talks_with_hachi_serve(server: Llama, open_at: Open, tmp_path: Path) -> None:
    pet = await open_at(server, consolidate="off")
    _, key = await pet.admin.keys.create("client", "user", "lea", now=pet.clock())
    run = hachi(server, tmp_path, "serve", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        *run["args"], env=run["env"], stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while not (
                found := re.search(r"http://127\.0\.0\.1:\d+", (await process.stderr.readline()).decode())
            ):
                pass
        async with AsyncOpenAI(base_url=f"{found[0]}/v1", api_key=key, max_retries=0) as client:
            asked: Any = {"model": "hachi", "messages": [{"role": "user", "content": "Tell me of dogs."}]}
            whole = await client.chat.completions.create(**asked)
            [choice] = whole.choices
            assert choice.message.content
            assert not SYNTAX.search(choice.message.content)
            assert choice.finish_reason == server.exchanges[-1].finish
            short = await client.chat.completions.create(**asked, max_tokens=4)
            assert short.choices[0].finish_reason == server.exchanges[-1].finish
            shown = ""
            async for event in await client.chat.completions.create(**asked, stream=True):
                shown += "".join(choice.delta.content or "" for choice in event.choices)
            assert shown.strip()
            assert not SYNTAX.search(shown)
    finally:
        process.terminate()
        await process.communicate()


async def test_a_turn_replays_as_it_was(server: Llama, open_at: Open, tmp_path: Path) -> None:
    pet = await open_at(server, consolidate="off", answer_tokens=24, structured="none")
    assert_reply(await pet.respond("hello there", user="lea", author="Lea"))
    await pet.settle()
    asked = len(server.exchanges)
    run = hachi(server, tmp_path, "traces", "replay", "last")
    process = await asyncio.create_subprocess_exec(
        *run["args"], env=run["env"], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told = (await process.communicate())[0].decode()
    assert (process.returncode, "same" in told.lower()) == (0, True), told
    assert len(server.exchanges) == asked, "no model is asked"


async def test_every_error_of_a_server_that_is_away_is_told_soon(start: Start, open_at: Open) -> None:
    with start(n_ctx=512) as server:
        server.kill()
        pet = await open_at(server, consolidate="off", model_retries=0)
        began = time.monotonic()
        with pytest.raises(HachiError) as raised:
            await pet.respond("hello", user="lea")
        assert time.monotonic() - began < SOON
        assert "\n" not in str(raised.value)
