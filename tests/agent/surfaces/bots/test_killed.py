"""What is left when the process of a bot is killed: what was accepted is answered, once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from discord_server import DM, TOKEN, DiscordServer
from forked import forked
from scripted_server import Hang, ScriptedServer, answer
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer


class OnSlack:
    command = "slack"

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.settings = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": server.api,
        }
        self.events: list[Any] = []

    async def say(self, text: str) -> None:
        self.events.append(self.server.says("UANA", text, channel="D1"))
        await self.server.deliver(self.events[-1])

    async def say_all_again(self) -> None:
        await self.server.deliver(*self.events)

    @property
    def shown(self) -> list[str]:
        return [message.text for message in self.server.in_channel("D1")]


class OnDiscord:
    command = "discord"

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.settings = {"DISCORD_TOKEN": TOKEN, "DISCORD_API_URL": f"http://{server.address}/api/v10"}

    async def say(self, text: str) -> None:
        async with asyncio.timeout(30):
            await self.server.connected.wait()
        await self.server.say(text)

    async def say_all_again(self) -> None:
        await self.server.connected.wait()
        for said in self.server.history[DM]:
            await self.server.send("MESSAGE_CREATE", said)

    @property
    def shown(self) -> list[str]:
        return self.server.shown(DM)


ON_DISCORD = pytest.param((DiscordServer, OnDiscord), id="discord", marks=pytest.mark.slow)


@pytest.fixture(params=[pytest.param((SlackServer, OnSlack), id="slack"), ON_DISCORD])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    server, on = request.param
    async with server.running() as running:
        yield on(running)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


async def test_after_a_kill_the_next_start_ends_the_reply_that_was_cut_and_answers_what_waited_once(
    home: Path, platform: Any, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test", "HACHI_MODEL": "tiny"}
    settings = model | {"HACHI_API": "chat", "HACHI_MODEL_RETRIES": "0", "HACHI_HOME": str(home)}
    waiting = "SELECT * FROM work WHERE kind = 'answer'"
    server.script(Hang('{"message": "Once upon', 9))
    async with forked(platform.command, settings | platform.settings):
        await platform.say("a story, please")
        await until(lambda: platform.shown and rows(f"{waiting} AND payload LIKE '%:%:%'"))
        assert platform.shown[0].startswith("Once")
        await platform.say("are you there?")
        await until(lambda: len(rows(waiting)) == 2)
    getattr(platform.server, "connected", asyncio.Event()).clear()
    server.script(answer("Once upon a time."), answer("Here I am."), answer("Twice!"))
    async with forked(platform.command, settings | platform.settings):
        await platform.say_all_again()
        await until(lambda: len(platform.shown) == 2)
        await platform.say_all_again()
        await until(lambda: not rows(waiting))
    assert platform.shown == ["Once upon a time.", "Here I am."]
    assert len(rows("SELECT * FROM messages")) == 4
