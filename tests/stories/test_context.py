"""Stories of what a companion carries from one turn to the next: wishes, decisions, the person's clock and
tasks. Each goes through a whole companion; what its model is sent is looked at, or the offline stand-in
answers by it."""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, Say, ScriptedServer, answer

from hachi import Companion
from hachi.testing import AnsweringModel
from memory.audience import PRIVATE

TALKATIVE = Path(__file__).parent.parent / "doubles" / "talkative.py"

Opened = Callable[..., AbstractAsyncContextManager[Companion]]
Hachi = Callable[..., Any]
Rows = Callable[..., list[dict[str, Any]]]


async def say(pet: Companion, text: str, user: str = "ana", **where: Any) -> str:
    """What it answers, once all that follows from the message is done."""
    reply = await pet.respond(text, user=user, **where)
    await pet.settle()
    return reply.message


# What was said is carried on.


def sent(model: AnsweringModel, turn: int) -> str:
    return json.dumps(model.inputs[turn], ensure_ascii=False)


def so_far(system: str) -> str:
    """The section that sums up the conversation."""
    _, _, rest = system.partition("## Conversation summary\n")
    return rest.partition("\n\n")[0]


async def test_what_was_decided_in_a_channel_is_carried_there_and_nowhere_else(
    opened: Opened, clock: Any
) -> None:
    model = AnsweringModel()

    async with opened(given=model, look_back="plain", history_messages=4) as pet:
        await say(pet, "We decided to meet on Thursdays.", user="ben", place="acme/general")
        for n in range(3):
            await say(pet, f"It rained for {n} hours.", place="acme/general")
            clock.advance(minutes=1)
        await say(pet, "so?", user="cleo", place="acme/general")
        await say(pet, "so?", user="ben")
        await say(pet, "so?", place="acme/random")

    there, private, elsewhere = model.systems[-3:]
    assert "ben: We decided to meet on Thursdays." in so_far(there)
    assert (so_far(private), so_far(elsewhere)) == ("", "")
    assert "Thursdays" not in sent(model, -3)


async def test_killed_between_the_reply_and_the_look_back_the_summary_is_there_after_the_next_start(
    scripted: Opened, server: ScriptedServer, home: Path, rows: Rows, clock: Any
) -> None:
    server.script(answer("Lyon it is."), answer("In Lyon."))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(TALKATIVE), str(home), server.url, "freeze", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            await process.stdout.readline()
    finally:
        process.kill()
        await process.communicate()
    assert server.looked_back == []
    assert rows("SELECT * FROM active_conversations") == []

    server.script_looking_back(Say(json.dumps({"summary": "Ana moves to Lyon."})))
    clock.now = datetime.now(UTC)  # the process went by the real clock
    async with scripted(history_messages=0) as pet:
        await pet.settle()
        await say(pet, "so where?")

    assert "Lyon it is." in server.looked_back[0].text
    assert so_far(server.asked[1].system) == "> Ana moves to Lyon."
    assert rows("SELECT * FROM work") == []


# The person's clock, and what they have to do.

WINTER, BEFORE_SUMMER_TIME = (
    datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
    datetime(2027, 3, 27, 9, 30, tzinfo=UTC),
)


@pytest.mark.parametrize(("now", "due"), [(WINTER, "22 08:00"), (BEFORE_SUMMER_TIME, "28 07:00")])
def test_tomorrow_at_nine_is_nine_by_the_persons_own_clock(
    opened: Opened, clock: Any, hachi: Hachi, now: datetime, due: str
) -> None:
    task = "call mum"
    clock.now = now

    async def talk() -> str:
        async with opened() as pet:
            await pet.people.set_context("timezone", "Europe/Paris", user="ana")
            await say(pet, "remind me to call mum tomorrow at 9")
            [noted] = await pet.components.tasks.list("ana", PRIVATE)
            assert task in noted.description
            assert noted.due is not None
            assert f"{noted.due:%d %H:%M}" == due
        async with ScriptedServer.running() as server:
            server.script(answer("Hello."))
            settings = {"openai_base_url": server.url, "model": "tiny", "api": "chat", "look_back": "plain"}
            async with opened(**settings) as pet:
                await say(pet, "hello", conversation="another")
            return server.asked[0].system

    prompt = asyncio.run(talk())

    offset = "UTC+01:00" if now == WINTER else "UTC+02:00"
    day = f"{due[:2]} {now:%b %Y} 09:00 {offset}"
    assert day in next(n for n in prompt.splitlines() if task in n)
    assert "10:30:00 (Europe/Paris, UTC+01:00)" in prompt
    listed = next(line for line in hachi("tasks", "list").out.splitlines() if task in line)
    assert f"{now:%Y-%m}-{due[:2]} 09:00" in listed


async def test_a_time_that_a_model_gives_without_an_offset_is_by_the_persons_own_clock(
    scripted: Opened, server: ScriptedServer
) -> None:
    reminder = {"id": None, "description": "call mum", "status": "open", "due": "2026-11-22T09:00"}
    server.script(Call("update_task", reminder), answer("I will."), answer("Hello."))

    async with scripted() as pet:
        await pet.people.set_context("timezone", "Europe/Paris", user="ana")
        await say(pet, "remind me to call mum tomorrow at 9")
        [task] = await pet.components.tasks.list("ana", PRIVATE)
        await say(pet, "hello", conversation="another")

    assert task.due == datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert "call mum (open, due Sun 22 Nov 2026 09:00 UTC+01:00)" in server.asked[-1].system


# Without looking back.


async def test_without_looking_back_the_facts_of_the_answers_are_kept_and_found_in_another_conversation(
    scripted: Opened, server: ScriptedServer, rows: Rows
) -> None:
    fact = {"content": "Ana's boat is green", "subjects": ["ana", "boat"], "importance": 0.6}
    server.script(
        answer("A fine colour!", fact),
        Call("search_memories", {"query": "the keel of Zanzibar"}),
        answer("Green."),
    )

    async with scripted(look_back="off") as pet:
        await say(pet, "my boat is green, please be brief")
    async with scripted(look_back="off") as pet:
        await say(pet, "what about my boat?", conversation="another")

    assert "> - [FACT] Ana's boat is green (" in server.asked[1].system
    assert server.looked_back == []
    assert all("Conversation summary" not in asked.system for asked in server.asked)
    assert [rows(f"SELECT * FROM {table}") for table in ("active_conversations", "context_entries")] == [
        [],
        [],
    ]
