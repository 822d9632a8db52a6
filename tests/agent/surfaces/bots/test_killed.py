"""What is left when the process of a bot is killed: what was accepted is answered, once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from discord_server import BOT, DM, GENERAL, TOKEN, DiscordServer
from forked import forked
from scripted_server import Hang, ScriptedServer, answer
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer


class OnSlack:
    command, there, private = "slack", "C1", "D1"

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.settings = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": server.api,
        }
        self.events: list[Any] = []

    async def say(self, text: str, channel: str) -> None:
        if channel == self.private:
            told = [self.server.says("UANA", text, channel=channel)]
        else:
            told = self.server.mentions("UANA", text, channel=channel)
        self.events += told
        await self.server.deliver(*told)

    async def say_all_again(self) -> None:
        await self.server.deliver(*self.events)

    def shown(self, channel: str) -> list[str]:
        return [message.text for message in self.server.in_channel(channel)]


class OnDiscord:
    command, there, private = "discord", GENERAL, DM

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.settings = {"DISCORD_TOKEN": TOKEN, "DISCORD_API_URL": f"http://{server.address}/api/v10"}

    async def say(self, text: str, channel: int) -> None:
        async with asyncio.timeout(30):
            await self.server.connected.wait()
        await self.server.say(text if channel == DM else f"<@{BOT}> {text}", channel=channel)

    async def say_all_again(self) -> None:
        await self.server.connected.wait()
        for channel in (DM, GENERAL):
            await self.server.send("MESSAGE_CREATE", self.server.history[channel][-1])

    def shown(self, channel: int) -> list[str]:
        return self.server.shown(channel)


@pytest.fixture(params=[(SlackServer, OnSlack), (DiscordServer, OnDiscord)], ids=["slack", "discord"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    server, on = request.param
    async with server.running() as running:
        yield on(running)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


async def test_after_a_kill_the_next_start_answers_once_and_ends_the_reply_that_was_cut(
    home: Path, platform: Any, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test", "HACHI_MODEL": "tiny"}
    settings = model | {"HACHI_API": "chat", "HACHI_MODEL_RETRIES": "0", "HACHI_HOME": str(home)}
    waiting = "SELECT * FROM work WHERE kind = 'answer'"
    server.script(Hang('{"message": "Once upon', 9), Hang())
    async with forked(platform.command, settings | platform.settings):
        await platform.say("a story, please", platform.there)
        await until(lambda: platform.shown(platform.there) and rows(f"{waiting} AND payload LIKE '%:%:%'"))
        assert platform.shown(platform.there)[0].startswith("Once")
        await platform.say("are you there?", platform.private)
        await until(lambda: len(server.asked) == 2)
    getattr(platform.server, "connected", asyncio.Event()).clear()
    server.script(*[answer("Here is all of it.")] * 2, answer("Twice!"))
    async with forked(platform.command, settings | platform.settings):
        await platform.say_all_again()
        await until(lambda: platform.shown(platform.private))
        await platform.say_all_again()
        await until(lambda: not rows(waiting))
    for channel in (platform.there, platform.private):
        assert platform.shown(channel) == ["Here is all of it."]
    assert len(rows("SELECT * FROM messages")) == 4
