"""Companions and servers on 127.0.0.1, for the tests of HTTP and MCP."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.surfaces.http.server import Server, address_of, listening, server_of
from hachi import Companion, Settings
from memory.sql.keys import Key


@asynccontextmanager
async def companion_in(home: Path, clock: Any = None, **given: Any) -> AsyncIterator[Companion]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("HACHI_", "OPENAI_", "QDRANT_"))]:
            patch.delenv(name)
        settings = Settings(home=home, embedder="bundled", **given)
    async with Companion.open(settings, periodic_jobs=False, **({"clock": clock} if clock else {})) as pet:
        yield pet


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[tuple[str, Server]]:
    """Serve the application during the block; yield its address and its server."""
    with listening("127.0.0.1", 0) as listener:
        server = server_of(app)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield address_of(listener), server
        finally:
            server.should_exit = True
            await running


async def new_key(pet: Companion, user: str | None = None, *, admin: bool = False) -> tuple[Key, str]:
    """Create a key of that user, or of a service, and return it with its secret."""
    kind: Any = "service" if user is None else "user"
    return await pet.admin.keys.create("test", kind, user, admin, now=pet.clock())
