"""The command `hachi` as a process of its own that can be killed. It is forked from a server that has loaded
the large libraries once: loading them takes most of a start."""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agent.surfaces.cli import main

FORKS = multiprocessing.get_context("forkserver")
BOTS = [f"agent.surfaces.bots.{name}.bot" for name in ("discord", "slack")]
FORKS.set_forkserver_preload(["agents", *BOTS])


@asynccontextmanager
async def forked(command: str, settings: Mapping[str, str]) -> AsyncIterator[None]:
    """`hachi COMMAND` with these settings and no others, killed (SIGKILL) at the end of the block."""
    process = FORKS.Process(target=_run, args=(command, dict(settings)))
    process.start()
    try:
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


def _run(command: str, settings: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(settings)
    main((command,))
