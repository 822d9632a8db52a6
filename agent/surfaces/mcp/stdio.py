"""MCP over stdin and stdout, for a program that starts Hachi itself: one person, in one place.

Only the protocol is written to stdout: meanwhile everything else that is printed goes to stderr.
"""

import asyncio
import signal
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

GRACE = 30.0
"""Seconds to answer the requests that arrived before stdin ended."""
POLL = 0.05
"""Seconds between two looks at the requests in progress."""


class InFlight:
    """MCP middleware that counts the requests in progress."""

    def __init__(self) -> None:
        self._requests = 0

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._requests += 1
        try:
            return await call_next(ctx)
        finally:
            self._requests -= 1

    async def drained(self) -> None:
        """Returns when no request was in progress twice in a row, or after GRACE. Between the two looks a
        line that was just read reaches the middleware, and an answer is written."""
        idle = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while idle < 2:
                    await asyncio.sleep(POLL)
                    idle = 0 if self._requests else idle + 1


def read_lines(descriptor: int, lines: "asyncio.Queue[str | None]") -> None:
    """Puts each line, and an empty one at the end of input. A daemon thread reads, so that a signal can
    end the process while a read blocks."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        with suppress(OSError, RuntimeError):  # RuntimeError: the loop is closed
            for line in open(descriptor, "rb", closefd=False):  # noqa: SIM115 - closes nothing
                if text := line.decode(errors="replace").strip():
                    loop.call_soon_threadsafe(lines.put_nowait, text)
            loop.call_soon_threadsafe(lines.put_nowait, "")

    Thread(target=read, daemon=True).start()


async def until_stopped(lines: "asyncio.Queue[str | None]", in_flight: InFlight) -> AsyncIterator[str]:
    """Yields lines until a None, which also comes once the requests before the end of input are answered."""

    async def stop_when_drained() -> None:
        await in_flight.drained()
        lines.put_nowait(None)

    draining: list[asyncio.Task[None]] = []
    while (line := await lines.get()) is not None:
        if line:
            yield line
        else:
            draining.append(asyncio.create_task(stop_when_drained()))


async def serve_stdio(pet: Companion, identity: Identity) -> None:
    """Serves until stdin ends, or until SIGINT or SIGTERM."""
    server = MemoryServer(pet, lambda: identity)
    server.middleware.append(in_flight := InFlight())
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    read_lines(sys.stdin.fileno(), lines)
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, lines.put_nowait, None)
    try:
        stdin = cast("anyio.AsyncFile[str]", until_stopped(lines, in_flight))
        async with stdio_server(stdin=stdin) as (received, sent):
            await server.serve(received, sent)
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
