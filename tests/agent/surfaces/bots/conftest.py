"""A companion with a scripted model, and a small chat platform in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from scripted_server import ScriptedServer

from agent import Companion
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage, ToForget
from memory.records import Decision

OpenPet = Callable[..., Awaitable[Companion]]


@pytest.fixture
async def pet(open_pet: OpenPet, server: ScriptedServer) -> Companion:
    return await open_pet(
        openai_base_url=server.url,
        openai_api_key="sk-test",
        model="tiny",
        api="chat",
        look_back="plain",
        model_retries=0,
    )


class Time:
    """A clock that sleeping moves on, without waiting."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class FakeReply:
    message: IncomingMessage
    texts: list[str] = field(default_factory=list)
    final: str | None = None
    new: Sequence[Decision] = ()
    forget: ToForget = None
    away: bool = False

    async def show(self, text: str) -> None:
        self.texts.append(text)

    async def finish(self, text: str, new: Sequence[Decision] = (), forget: ToForget = None) -> None:
        if self.away:
            raise ConnectionError("the platform is away")
        self.final, self.new, self.forget = text, new, forget


class FakePlatform:
    """Messages carry their `Content` as `source`."""

    busy_seconds = 60.0

    def __init__(self) -> None:
        self.replies: list[FakeReply] = []
        self.busy: list[bool] = []
        self.away = False

    async def read(self, message: IncomingMessage) -> Content:
        content: Content = message.source
        return content

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        self.busy.append(busy)

    def reply_to(self, message: IncomingMessage) -> FakeReply:
        self.replies.append(FakeReply(message, away=self.away))
        return self.replies[-1]

    @property
    def said(self) -> list[str | None]:
        return [reply.final for reply in self.replies]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def platform() -> FakePlatform:
    return FakePlatform()


@pytest.fixture
async def conversations_with(
    pet: Companion, platform: FakePlatform, time: Time
) -> AsyncIterator[Callable[..., Conversations]]:
    made: list[Conversations] = []

    def make(**options: Any) -> Conversations:
        fast: dict[str, Any] = {"burst_seconds": 0.01, "edit_seconds": 0.01, "monotonic": time.monotonic}
        made.append(Conversations(pet, platform, **fast | options))
        return made[-1]

    yield make
    for conversations in made:
        await conversations.stop(0)


@pytest.fixture
def conversations(conversations_with: Callable[..., Conversations]) -> Conversations:
    return conversations_with()
