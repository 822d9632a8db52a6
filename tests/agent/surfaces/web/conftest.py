"""The pages over a companion, with traces that were written for them."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from agent.surfaces.web.application import app

sys.path.insert(0, str(Path(__file__).parent))

from written_traces import Written


@pytest.fixture
async def pet(open_pet):
    return await open_pet()


@pytest.fixture
def write(pet):
    return Written(pet)


@pytest.fixture
async def ask(pet):
    """`ask(loopback=False, host="hachi.example")`: a client of the pages; with a `person` of the console."""
    async with AsyncExitStack() as closing:

        def client(*, loopback=True, host="localhost:8020", person=None):
            transport = httpx.ASGITransport(
                app=app(pet, loopback=loopback, person=person), raise_app_exceptions=False
            )
            made = httpx.AsyncClient(transport=transport, base_url=f"http://{host}")
            closing.push_async_callback(made.aclose)
            return made

        yield client
