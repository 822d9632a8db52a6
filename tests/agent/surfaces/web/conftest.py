"""The pages over a companion, with traces that were written for them."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from agent import Companion
from agent.surfaces.web.application import app

sys.path.insert(0, str(Path(__file__).parent))

from written_traces import Written


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]]) -> Companion:
    return await open_pet()


@pytest.fixture
def write(pet: Companion) -> Written:
    return Written(pet)


@pytest.fixture
async def ask(pet: Companion) -> AsyncIterator[Callable[..., httpx.AsyncClient]]:
    """`ask(loopback=False, host="hachi.example")`: a client of the pages."""
    async with AsyncExitStack() as closing:
        made: list[httpx.AsyncClient] = []

        def client(*, loopback: bool = True, host: str = "localhost:8020") -> httpx.AsyncClient:
            transport = httpx.ASGITransport(app=app(pet, loopback=loopback), raise_app_exceptions=False)
            made.append(httpx.AsyncClient(transport=transport, base_url=f"http://{host}"))
            closing.push_async_callback(made[-1].aclose)
            return made[-1]

        yield client
