"""Agents that use the tools: the SDK's own client, in this process or over HTTP on 127.0.0.1."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from sites import companion_in, new_key, serving

from agent.surfaces.http.server import is_loopback
from agent.surfaces.mcp.http import app
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity
from hachi import Companion
from memory.audience import Place
from memory.sql.keys import Key

Agents = Callable[..., AbstractAsyncContextManager["Agent"]]


@dataclass(frozen=True)
class Agent:
    client: Client

    async def ask(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The data of a call that succeeds."""
        result = await self.ask(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The one line of a call that fails."""
        result = await self.ask(tool, **arguments)
        assert result.is_error
        [text] = result.content
        assert "\n" not in text.text  # type: ignore[union-attr]
        return text.text  # type: ignore[union-attr]

    async def knows(self) -> list[str]:
        """The newest facts it may read."""
        return [found["content"] for found in (await self.call("get_recent_memories"))["memories"]]


@pytest_asyncio.fixture(loop_scope="session")
async def pet(home: Path, clock: Any) -> AsyncIterator[Companion]:
    async with companion_in(home, clock) as companion:
        yield companion


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared(shared_home: Path) -> AsyncIterator[Companion]:
    """One companion for the tests of a module."""
    async with companion_in(shared_home) as companion:
        yield companion


@pytest.fixture
def agent() -> Agents:
    """`async with agent(pet, "ana", "acme/general") as an_agent`: without HTTP between them."""

    @asynccontextmanager
    async def connected(
        pet: Companion, user: str | None, place: str = "dm", **options: Any
    ) -> AsyncIterator[Agent]:
        identity = Identity(user, Place.parse(place), **options)
        async with Client(MemoryServer(pet, lambda: identity), mode="legacy") as client:
            yield Agent(client)

    return connected


@dataclass
class Site:
    """A server that runs."""

    url: str
    pet: Companion

    async def key(self, user: str | None = None, *, admin: bool = False) -> tuple[Key, dict[str, str]]:
        """With the header that shows it."""
        key, secret = await new_key(self.pet, user, admin=admin)
        return key, {"authorization": f"Bearer {secret}"}

    @asynccontextmanager
    async def agent(
        self, headers: dict[str, str] | None = None, *, mode: str = "legacy"
    ) -> AsyncIterator[Agent]:
        async with (
            self.http(headers) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield Agent(client)

    def http(self, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False, verify=False)

    async def post(self, body: Any = None, headers: dict[str, str] | None = None) -> httpx2.Response:
        """One request, as it goes over the wire."""
        given = {"accept": "application/json, text/event-stream", **(headers or {})}
        asked = body or {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        async with self.http() as http:
            return await http.post(self.url, json=asked, headers=given)


@asynccontextmanager
async def opened(
    home: Path, host: str = "127.0.0.1", names: tuple[str, ...] = (), **given: Any
) -> AsyncIterator[Site]:
    async with companion_in(home, **given) as pet:
        made = app(pet, host=host, loopback=is_loopback(host), names=names)
        async with serving(made) as (url, _):
            yield Site(f"{url}/mcp", pet)


@pytest_asyncio.fixture(loop_scope="session")
async def serve(home: Path) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """`await serve(host=…, names=…, **settings)`: a site of this test alone."""
    async with AsyncExitStack() as leaving:
        yield lambda **given: leaving.enter_async_context(opened(home, **given))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(shared_home: Path) -> AsyncIterator[Site]:
    """One site for the tests of a module; it has keys."""
    async with opened(shared_home, http_rate=0) as running:
        await running.key("nobody")
        yield running
