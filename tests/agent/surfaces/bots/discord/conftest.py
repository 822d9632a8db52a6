"""A real discord.py before a Discord of our own, with a companion whose model is scripted."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yarl
from discord_server import TOKEN, DiscordServer

from hachi import Companion

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of audioop, for voice, which is not used
    import discord
    from discord.gateway import DiscordWebSocket

from agent.surfaces.bots import platform_jobs
from agent.surfaces.bots.discord.bot import DiscordBot


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    async with DiscordServer.running() as running:
        monkeypatch.setattr(discord.http.Route, "BASE", f"http://{running.address}/api/v10")
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL("ws://127.0.0.1:9/"))
        yield running


@dataclass
class Bot:
    """The bot, online, and the Discord it is on."""

    client: DiscordBot
    platform: DiscordServer
    running: "asyncio.Task[None]"

    async def hears(self, text: str, **given: Any) -> int:
        """Somebody writes, and everything is answered. The id of the message."""
        sent = await self.platform.say(text, **given)
        await self.reached(sent)
        await self.client.conversations.settle()
        return sent

    async def reached(self, id: int) -> None:
        """Until discord.py has passed the message on."""
        async with asyncio.timeout(60):
            await self.client.passed(id)  # type: ignore[attr-defined]


class Watched(DiscordBot):
    """Lets one wait until a message has come through."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._came: set[int] = set()
        self.may_identify = asyncio.Event()
        """Until it is set no other session begins."""
        self.may_identify.set()
        self._news = asyncio.Condition()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Without the five seconds that discord.py waits before it begins another session."""
        await self.may_identify.wait()

    async def on_message(self, message: discord.Message, **options: Any) -> None:
        try:
            await super().on_message(message, **options)
        finally:
            async with self._news:
                self._came.add(message.id)
                self._news.notify_all()

    async def passed(self, id: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: id in self._came)


GoOnline = Callable[..., Awaitable[Bot]]


@pytest.fixture
async def go_online(
    platform: DiscordServer, pet: Companion, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GoOnline]:
    """`await go_online()`: a bot that is ready; several may be."""
    monkeypatch.setattr(platform_jobs, "LOOK_SECONDS", 0.05)
    bots: list[Bot] = []

    async def go(companion: Companion = pet) -> Bot:
        client = Watched(companion, guild_ready_timeout=0.02)
        client.conversations.burst_seconds, client.conversations.platform.edit_seconds = 0.002, 0.1
        running = asyncio.create_task(client.start(TOKEN))
        ready = asyncio.create_task(client.online.wait())
        await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED, timeout=10)
        if running.done():
            ready.cancel()
            running.result()
        while not client.jobs._noted_at:  # noqa: ASYNC110 - it has caught up
            await asyncio.sleep(0.01)
        bots.append(Bot(client, platform, running))
        return bots[-1]

    yield go
    for bot in bots:
        await bot.client.leave()
        await asyncio.gather(bot.running, return_exceptions=True)


@pytest.fixture
async def bot(go_online: GoOnline) -> Bot:
    return await go_online()
