"""What is left when the process of a bot is killed: what was accepted is answered, once."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from discord_server import DM, TOKEN, DiscordServer
from scripted_server import Hang, ScriptedServer, answer
from slack_server import APP_TOKEN, BOT_TOKEN, SlackServer

Start = Callable[[], Any]


class OnSlack:
    command, settings = "slack", {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.settings = self.settings | {"SLACK_API_URL": server.api}
        self.event: Any = None

    async def say(self, text: str) -> None:
        self.event = self.server.says("UANA", text, channel="D1")
        await self.server.deliver(self.event)

    async def say_again(self) -> None:
        await self.server.deliver(self.event)

    @property
    def shown(self) -> list[str]:
        return [message.text for message in self.server.in_channel("D1")]


class OnDiscord:
    command, settings = "discord", {"DISCORD_TOKEN": TOKEN}

    def __init__(self, server: DiscordServer) -> None:
        self.server = server
        self.settings = self.settings | {"DISCORD_API_URL": f"http://{server.address}/api/v10"}

    async def say(self, text: str) -> None:
        async with asyncio.timeout(30):
            await self.server.connected.wait()
        await self.server.say(text)

    async def say_again(self) -> None:
        await self.server.connected.wait()
        await self.server.send("MESSAGE_CREATE", self.server.history[DM][-1])

    @property
    def shown(self) -> list[str]:
        return self.server.shown(DM)


@pytest.fixture(params=[(SlackServer, OnSlack), (DiscordServer, OnDiscord)], ids=["slack", "discord"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    server, on = request.param
    async with server.running() as running:
        yield on(running)


@pytest.fixture
def start(home: Path, server: ScriptedServer, platform: Any) -> Start:
    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        """The bot as a process of its own, killed (SIGKILL) at the end of the block."""
        model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test", "HACHI_MODEL": "tiny"}
        settings = model | {"HACHI_API": "chat", "HACHI_MODEL_RETRIES": "0", "HACHI_HOME": str(home)}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hachi", platform.command),
            env={"PATH": "/usr/bin", **settings, **platform.settings},
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield
        finally:
            process.kill()
            await process.communicate()
            getattr(platform.server, "connected", asyncio.Event()).clear()

    return running


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


async def test_killed_while_the_model_thinks_the_next_start_answers_once(
    start: Start, platform: Any, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    server.script(Hang())
    async with start():
        await platform.say("are you there?")
        await until(lambda: server.asked)
    server.script(answer("Here I am."), answer("Twice!"))
    async with start():
        await platform.say_again()
        await until(lambda: platform.shown)
        await platform.say_again()
        await until(lambda: not rows("SELECT * FROM work WHERE kind = 'answer'"))
    assert platform.shown == ["Here I am."]


async def test_a_reply_that_a_kill_cut_is_written_to_its_end_by_the_next_start(
    start: Start, platform: Any, server: ScriptedServer, rows: Callable[..., Any]
) -> None:
    server.script(Hang('{"message": "Once upon', 9))
    async with start():
        await platform.say("a story, please")
        noted = "SELECT * FROM work WHERE kind = 'answer' AND payload LIKE '%:%:%'"
        await until(lambda: platform.shown and rows(noted))
        assert platform.shown[0].startswith("Once")
    server.script(answer("Once upon a time."))
    async with start():
        await until(lambda: not rows("SELECT * FROM work WHERE kind = 'answer'"))
    assert platform.shown == ["Once upon a time."]
    assert len(rows("SELECT * FROM messages")) == 2
