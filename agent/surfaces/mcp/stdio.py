"""Serve MCP on stdin and stdout to the program that started Hachi, for one person in one place.

Only the protocol is written to stdout; everything else that is printed goes to stderr.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from threading import Thread
from typing import Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server

from agent.companion import Companion
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity
from agent.surfaces.signals import on_stop_signal

GRACE = 30.0
"""Seconds to answer the requests that arrived before stdin ended."""
POLL = 0.05
"""Seconds between two checks of the requests in progress."""


class Lines:
    """The lines of stdin, which end when all requests are answered after its end, or when `stop` is called.
    `count` is MCP middleware that counts the requests in progress."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._requests = 0
        self._stopped = False

    def read(self, descriptor: int) -> None:
        """Read in a daemon thread, so that a signal can end the process while a read blocks."""

        def read() -> None:
            with suppress(OSError, RuntimeError):  # RuntimeError: the loop is closed
                for line in open(descriptor, "rb", closefd=False):  # noqa: SIM115 - closes nothing
                    if text := line.decode(errors="replace").strip():
                        self._loop.call_soon_threadsafe(self._lines.put_nowait, text)
                self._loop.call_soon_threadsafe(self._lines.put_nowait, "")

        Thread(target=read, daemon=True).start()

    def stop(self) -> None:
        self._stopped = True
        self._lines.put_nowait("")

    async def count(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._requests += 1
        try:
            return await call_next(ctx)
        finally:
            self._requests -= 1

    async def __aiter__(self) -> AsyncIterator[str]:
        while not self._stopped and (line := await self._lines.get()):
            yield line
        idle, polls_left = 0, GRACE / POLL
        while idle < 2 and polls_left > 0 and not self._stopped:  # the last line may not be counted yet
            await asyncio.sleep(POLL)
            idle, polls_left = 0 if self._requests else idle + 1, polls_left - 1


async def serve_stdio(pet: Companion, identity: Identity) -> None:
    """Serve until stdin ends, or until SIGINT or SIGTERM."""
    server, lines = MemoryServer(pet, lambda: identity), Lines()
    server.middleware.append(lines.count)
    lines.read(sys.stdin.fileno())
    with on_stop_signal(lines.stop):
        stdin = cast("anyio.AsyncFile[str]", lines)
        async with stdio_server(stdin=stdin) as (received, sent):
            await server.serve(received, sent)
