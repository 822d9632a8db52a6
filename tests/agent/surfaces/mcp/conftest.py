"""Agents that use the tools: the SDK's own client, in this process or over HTTP on 127.0.0.1."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from agent import Companion
from agent.surfaces.http.server import address_of, is_loopback, listening, server_of
from agent.surfaces.mcp.http import app
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity
from memory.audience import Place
from memory.sql.keys import Key

OpenPet = Callable[..., Awaitable[Companion]]
Agents = Callable[..., AbstractAsyncContextManager["Agent"]]


@dataclass(frozen=True)
class Agent:
    client: Client

    async def ask(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a call that succeeds answers with."""
        result = await self.ask(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The one line that a call answers with which does not succeed."""
        result = await self.ask(tool, **arguments)
        assert result.is_error
        [text] = result.content
        assert "\n" not in text.text  # type: ignore[union-attr]
        return text.text  # type: ignore[union-attr]

    async def knows(self) -> list[str]:
        """The newest facts it may read."""
        return [found["content"] for found in (await self.call("get_recent_memories"))["memories"]]


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
        """Of that user, or of a service; with the header that shows it."""
        kind: Any = "service" if user is None else "user"
        key, secret = await self.pet.services.keys.create("test", kind, user, admin, now=self.pet.clock())
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

    @asynccontextmanager
    async def agent_of(self, user: str | None, *, named: str | None = None, **options: Any) -> Any:
        """With a new key of that user, or of a service which names a user."""
        _, headers = await self.key(user)
        if named is not None:
            headers["x-openwebui-user-id"] = named
        async with self.agent(headers, **options) as agent:
            yield agent

    def http(self, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False)

    async def post(self, body: Any = None, headers: dict[str, str] | None = None) -> httpx2.Response:
        """One request, as it goes over the wire."""
        given = {"accept": "application/json, text/event-stream", **(headers or {})}
        asked = body or {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        async with self.http() as http:
            return await http.post(self.url, json=asked, headers=given)


@pytest.fixture
async def serve(open_pet: OpenPet) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """`await serve(host=…, names=…, **settings)`: a site, closed when the test ends."""
    async with AsyncExitStack() as closing:

        async def opened(host: str = "127.0.0.1", names: tuple[str, ...] = (), **settings: Any) -> Site:
            pet = await open_pet(**settings)
            listener = closing.enter_context(listening("127.0.0.1", 0))
            made = app(pet, pet.settings, host=host, loopback=is_loopback(host), names=names)
            server = server_of(made)
            running = asyncio.create_task(server.serve(sockets=[listener]))

            async def stop() -> None:
                server.should_exit = True
                await running

            closing.push_async_callback(stop)
            return Site(f"{address_of(listener)}/mcp", pet)

        yield opened
