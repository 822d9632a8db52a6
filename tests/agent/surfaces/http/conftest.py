"""The application behind a real server on 127.0.0.1."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI
from openai import AsyncOpenAI
from scripted_server import ScriptedServer
from sites import companion_in, new_key, serving

from agent.surfaces.http import limits
from agent.surfaces.http.application import app
from agent.surfaces.http.server import Server
from agent.wiring import components
from hachi import Companion
from memory.sql.keys import Key


@dataclass
class Site:
    """A server that runs."""

    url: str
    pet: Companion
    server: Server
    client: httpx2.AsyncClient
    """Without a key."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def key(self, user: str | None = None, *, admin: bool = False) -> tuple[Key, str]:
        return await new_key(self.pet, user, admin=admin)

    async def headers(self, user: str | None = None, *, admin: bool = False) -> dict[str, str]:
        """A header with a new key of that user, or of a service."""
        _, secret = await self.key(user, admin=admin)
        return {"authorization": f"Bearer {secret}"}

    def openai(self, key: str) -> AsyncOpenAI:
        """OpenAI's own client."""
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=20)

    def messages(self, user: str) -> list[dict[str, Any]]:
        """The rows of the transcript, as another process would read them."""
        with closing(sqlite3.connect(self.pet.settings.home / "hachi.db", timeout=15)) as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute("SELECT * FROM messages WHERE user_id = ? ORDER BY seq", (user,))
            return [dict(row) for row in found]

    async def say(self, text: str, headers: Any = None, **more: Any) -> httpx2.Response:
        body = {"model": "hachi", "messages": [{"role": "user", "content": text}], **more}
        return await self.client.post("/v1/chat/completions", json=body, headers=headers)


@asynccontextmanager
async def opened(home: Path, *, loopback: bool = False, **given: Any) -> AsyncIterator[Site]:
    async with (
        companion_in(home, **given) as pet,
        serving(app(pet, pet.settings, loopback=loopback, console=True)) as (url, server),
        httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as client,
    ):
        yield Site(url, pet, server, client)


@pytest.fixture(scope="session", autouse=True)
def _described_once() -> Iterator[None]:
    """All applications are described alike, which takes 0.3 s."""
    described: list[dict[str, Any]] = []
    describe = FastAPI.openapi

    def once(made: FastAPI) -> dict[str, Any]:
        described[:] = described or [describe(made)]
        return described[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastAPI, "openapi", once)
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def serve(
    home: Path, clock: Any, server: ScriptedServer
) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """`await serve(loopback=True, **settings)`: a server of this test alone, at the time of `clock`."""
    async with AsyncExitStack() as leaving:
        yield lambda **given: leaving.enter_async_context(opened(home, clock=clock, **given))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(shared_home: Path) -> AsyncIterator[Site]:
    """One server for the tests of a module."""
    async with AsyncExitStack() as leaving:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "MAX_BODY", 400_000)
            opened_site = await leaving.enter_async_context(opened(shared_home, http_rate=0))
        yield opened_site


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_model() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running


@pytest.fixture
def model(shared_model: ScriptedServer) -> ScriptedServer:
    """It answers `scripted`, and what another test has scripted is gone."""
    shared_model.clear()
    return shared_model


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scripted(shared_home: Path, shared_model: ScriptedServer) -> AsyncIterator[Site]:
    """The same, answered by `model`."""
    given = {"openai_base_url": shared_model.url, "openai_api_key": "sk-1", "model": "tiny", "api": "chat"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "GUARDED", dict.fromkeys(components.GUARDED, 1_000))  # each test has faults
        async with opened(shared_home / "scripted", http_rate=0, model_retries=0, **given) as running:
            yield running
