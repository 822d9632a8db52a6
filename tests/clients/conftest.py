"""`hachi serve` as a process of its own, for clients that are processes too, with a scripted model behind."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

Client = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def process(
    *command: str, env: dict[str, str], **pipes: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Ends with the block at the latest."""
    running = await asyncio.create_subprocess_exec(*command, env=os.environ | env, **pipes)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        async with asyncio.timeout(60):
            await running.communicate()


@pytest.fixture
async def serve(
    home: Path, server: ScriptedServer, open_pet: Callable[..., Awaitable[Any]]
) -> Callable[..., Any]:
    """`async with serve(**settings) as ask`: `hachi serve` runs; `await ask(*command)` is what the client
    saw."""

    @asynccontextmanager
    async def running(**settings: str) -> AsyncIterator[Client]:
        pet = await open_pet()
        _, secret = await pet.admin.keys.create("client", "user", "ana", now=pet.clock())
        env = {
            "HACHI_HOME": str(home),
            "HACHI_EMBEDDER": "bundled",
            "HACHI_MODEL": "tiny",
            "HACHI_API": "chat",
        }
        env |= {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-1",
            "HACHI_MODEL_RETRIES": "0",
            **settings,
        }
        code = "import sys; from agent.surfaces.cli import main; sys.exit(main())"
        command = (sys.executable, "-c", code, "serve", "--port", "0")
        async with process(*command, env=env, stderr=asyncio.subprocess.PIPE) as hachi:
            assert hachi.stderr is not None
            line = (await asyncio.wait_for(hachi.stderr.readline(), 60)).decode()
            found = re.search(r"listening on (http://\S+);", line)
            assert found, line

            async def ask(*command: str) -> Any:
                reach = {"HACHI_URL": f"{found[1]}/v1", "HACHI_KEY": secret}
                pipe = asyncio.subprocess.PIPE
                async with (
                    asyncio.timeout(120),
                    process(*command, env=reach, stdout=pipe, stderr=pipe) as client,
                ):
                    out, err = await client.communicate()
                    assert client.returncode == 0, err.decode()
                    return json.loads(out.splitlines()[-1])

            yield ask

    return running
