"""A companion whose model is scripted, and a stage of our own: what a platform does, in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from scripted_server import ScriptedServer

from agent import Companion
from agent.surfaces.bots.receipts import Receipt
from agent.surfaces.bots.turns import Said, Turns

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
    """A clock that sleeping moves on. Sleeping takes no time; or, while it is held, until it is let go."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.going = asyncio.Event()
        self.going.set()

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await self.going.wait()
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Shown:
    """One reply, as it appeared."""

    to: Said
    texts: list[str] = field(default_factory=list)
    final: str | None = None
    receipts: tuple[Receipt, ...] = ()
    away: bool = False

    async def show(self, text: str) -> None:
        self.texts.append(text)

    async def end(self, text: str, receipts: Sequence[Receipt]) -> None:
        if self.away:
            raise ConnectionError("the platform is away")
        self.final, self.receipts = text, tuple(receipts)


class Channel:
    """A stage that remembers what was shown on it."""

    def __init__(self) -> None:
        self.replies: list[Shown] = []
        self.busy_now = 0
        self.was_busy = 0
        self.away = False

    @asynccontextmanager
    async def busy(self, said: Said) -> AsyncIterator[None]:
        self.busy_now += 1
        self.was_busy += 1
        try:
            yield
        finally:
            self.busy_now -= 1

    def screen(self, said: Said) -> Shown:
        self.replies.append(Shown(said, away=self.away))
        return self.replies[-1]

    @property
    def said(self) -> list[str | None]:
        return [reply.final for reply in self.replies]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
async def turns(pet: Companion, channel: Channel, time: Time) -> AsyncIterator[Turns]:
    made = new_turns(pet, channel, time)
    yield made
    await made.stop(0)


def new_turns(pet: Companion, channel: Channel, time: Time, **given: Any) -> Turns:
    return Turns(pet, channel, sleep=time.sleep, monotonic=time.monotonic, **given)


@pytest.fixture
def turns_with(pet: Companion, channel: Channel, time: Time) -> Callable[..., Turns]:
    return lambda **given: new_turns(pet, channel, time, **given)
