"""A companion whose model is the scripted server, over each API, streamed and not."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from scripted_server import ScriptedServer

from hachi import Companion, Reply

KEY = "sk-test-4f1d2c"

OpenPet = Callable[..., Awaitable[Companion]]
Rows = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True)
class Way:
    """One of the four ways to ask a model."""

    api: str
    streamed: bool

    async def ask(self, pet: Companion, text: str, **arguments: Any) -> tuple[Reply, str]:
        """The reply, and the text that was shown."""
        if not self.streamed:
            reply = await pet.respond(text, **arguments)
            return reply, reply.message
        stream = pet.stream(text, **arguments)
        shown = "".join([piece async for piece in stream])
        return stream.reply, shown


WAYS = [Way(api, streamed) for api in ("responses", "chat") for streamed in (False, True)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way.api}{'-streamed' if way.streamed else ''}")
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


@pytest.fixture
def pet_at(open_pet: OpenPet, server: ScriptedServer) -> Callable[..., Awaitable[Companion]]:
    """`await pet_at(way, **settings)`: a companion that asks the scripted server in this way."""

    async def opened(way: Way, **settings: Any) -> Companion:
        defaults = {"openai_base_url": server.url, "openai_api_key": KEY, "model": "tiny", "api": way.api}
        return await open_pet(**defaults | settings)

    return opened


@pytest.fixture
def first_way() -> Way:
    """Where one way is enough."""
    return WAYS[0]


@pytest.fixture
def one_streamed() -> Way:
    """The other extreme: the other API, streamed."""
    return WAYS[-1]


@pytest.fixture(params=[WAYS[0], WAYS[1], WAYS[3]], ids=["whole", "streamed", "chat-streamed"])
def some_way(request: pytest.FixtureRequest) -> Way:
    """Whole and streamed; where the two streams differ, both."""
    chosen: Way = request.param
    return chosen


@pytest.fixture(params=[WAYS[1], WAYS[3]], ids=["responses", "chat"])
def streamed(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen
