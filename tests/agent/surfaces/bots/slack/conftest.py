"""A real slack-bolt before a Slack of our own, with a companion whose model is scripted."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from slack_sdk.http_retry import builtin_async_handlers
from slack_server import APP_TOKEN, BOT_TOKEN, SECRET, SlackServer

from agent.surfaces.bots.slack.bot import SlackBot, listening
from hachi import Companion, Settings


@pytest.fixture
async def slack(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlackServer]:
    """The SDK tries again at once; otherwise it would wait up to two seconds, partly by chance."""
    monkeypatch.setattr(random, "random", lambda: 0.0)
    monkeypatch.setattr(builtin_async_handlers.default_interval_calculator, "backoff_factor", 0.0)
    async with SlackServer.running() as running:
        running.names |= {"UANA": "Ana", "UBEN": "Ben"}
        yield running


@pytest.fixture
def settings(slack: SlackServer) -> Settings:
    return Settings.load(
        slack_bot_token=BOT_TOKEN,
        slack_app_token=APP_TOKEN,
        slack_signing_secret=SECRET,
        slack_api_url=slack.api,
    )


@dataclass
class Bot:
    """The bot on its Slack, and the Slack it is on."""

    hachi: SlackBot
    slack: SlackServer
    where: str
    """What was told of how events come in."""

    async def hears(self, *payloads: dict[str, Any]) -> None:
        """What Slack tells comes in by Socket Mode, and all that is to be answered is."""
        await self.slack.deliver(*payloads)
        await self.hachi.conversations.settle()


GoOnline = Callable[..., Awaitable[Bot]]


@pytest.fixture
async def go_online(slack: SlackServer, settings: Settings, pet: Companion) -> AsyncIterator[GoOnline]:
    """`await go_online()`: a bot that is there, in Socket Mode; `http=True`, by HTTP. Leaves when the test
    ends."""
    async with AsyncExitStack() as leaving:

        async def go(companion: Companion = pet, *, http: bool = False) -> Bot:
            hachi = SlackBot(companion, settings)
            hachi.conversations.burst_seconds, hachi.conversations.platform.edit_seconds = 0.002, 0.1
            where = await leaving.enter_async_context(listening(hachi, ("127.0.0.1", 0) if http else None))
            leaving.push_async_callback(hachi.conversations.stop)
            return Bot(hachi, slack, where)

        yield go


@pytest.fixture
async def bot(go_online: GoOnline) -> Bot:
    return await go_online()
