"""The application behind a real server on 127.0.0.1."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from agent import Companion, Settings
from agent.surfaces.http.application import app
from agent.surfaces.http.server import Server, address_of, listening, server_of
from memory.sql.keys import Key, Keys

OpenPet = Callable[..., Awaitable[Companion]]


@dataclass
class Site:
    """A server that runs."""

    url: str
    pet: Companion
    server: Server
    client: httpx2.AsyncClient
    """Without a key."""

    @property
    def keys(self) -> Keys:
        return self.pet.services.keys

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def key(self, user: str | None = None, *, admin: bool = False) -> tuple[Key, str]:
        """A new key of that user, or of a service, and its secret."""
        kind: Any = "service" if user is None else "user"
        return await self.keys.create("test", kind, user, admin, now=self.pet.clock())

    async def headers(self, user: str | None = None, *, admin: bool = False) -> dict[str, str]:
        """A header with a new key of that user, or of a service."""
        _, secret = await self.key(user, admin=admin)
        return {"authorization": f"Bearer {secret}"}

    async def say(self, text: str, headers: Any = None, **more: Any) -> httpx2.Response:
        body = {"model": "hachi", "messages": [{"role": "user", "content": text}], **more}
        return await self.client.post("/v1/chat/completions", json=body, headers=headers)


@asynccontextmanager
async def served(pet: Companion, settings: Settings, *, loopback: bool) -> AsyncIterator[Site]:
    with listening("127.0.0.1", 0) as listener:
        server = server_of(app(pet, settings, loopback=loopback))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        url = address_of(listener)
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=20, trust_env=False) as client:
                yield Site(url, pet, server, client)
        finally:
            server.should_exit = True
            await running


@pytest.fixture
async def serve(open_pet: OpenPet) -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    """`await serve(loopback=True, **settings)`: a server of this test alone."""
    async with AsyncExitStack() as closing:

        async def opened(*, loopback: bool = False, **given: Any) -> Site:
            pet = await open_pet(**given)
            return await closing.enter_async_context(served(pet, pet.settings, loopback=loopback))

        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """One server for the tests of a module that take it (with `loop_scope="session"`)."""
    home = Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("site") / "home"))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("HACHI_", "OPENAI_", "QDRANT_"))]:
            patch.delenv(name)
        settings = Settings(home=home, embedder="bundled", http_rate=0, http_max_body=400_000)
    async with (
        Companion.open(settings, upkeep=False) as pet,
        served(pet, settings, loopback=False) as running,
    ):
        yield running
