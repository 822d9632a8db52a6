"""Over stdin and stdout, for a program that starts Hachi itself: for one person, in one place.

Standard output is the protocol's alone: while it is served, whatever else is printed goes to stderr.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult
from mcp.server.stdio import stdio_server

from agent.companion import Companion
from agent.surfaces.mcp.reader import Asker
from agent.surfaces.mcp.server import Request, memory_server

PIECE = 65_536
"""Bytes that are read at once."""
GRACE = 30.0
"""Seconds for which requests that were made before stdin ended may still be answered."""
LOOK = 0.05
"""Seconds between two looks whether they are."""


class Underway:
    """Counts the requests that are being answered."""

    def __init__(self) -> None:
        self._requests = 0

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        self._requests += 1
        try:
            return await call_next(ctx)
        finally:
            self._requests -= 1

    async def over(self) -> None:
        """When twice in a row nothing was: between two looks a request is taken up, and an answer written."""
        quiet = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while quiet < 2:
                    await asyncio.sleep(LOOK)
                    quiet = 0 if self._requests else quiet + 1


class Lines:
    """What comes on a file descriptor, a line at a time. It is read in a thread that nobody waits for: a read
    that waits cannot be broken off, and Ctrl-C is not to wait for whoever is at the other end."""

    def __init__(self, descriptor: int, underway: Underway) -> None:
        self._underway = underway
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._running_out: asyncio.Task[None] | None = None
        Thread(target=self._read, args=(descriptor,), daemon=True).start()

    def end(self) -> None:
        """At once, whatever is underway."""
        self._lines.put_nowait(None)

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, descriptor: int) -> None:
        held: list[bytes] = []
        with suppress(OSError):
            while piece := os.read(descriptor, PIECE):
                *whole, rest = piece.split(b"\n")
                for line in whole:
                    self._hand(b"".join([*held, line]))
                    held.clear()
                held.append(rest)
        self._hand(b"".join(held))
        self._tell(self._run_out)

    def _hand(self, line: bytes) -> None:
        if text := line.decode(errors="replace").strip():
            self._tell(self._lines.put_nowait, text)

    def _tell(self, what: Callable[..., None], *given: Any) -> None:
        with suppress(RuntimeError):  # nobody listens any more
            self._loop.call_soon_threadsafe(what, *given)

    def _run_out(self) -> None:
        """Nothing comes any more; what was asked is still answered."""
        self._running_out = asyncio.create_task(self._underway.over())
        self._running_out.add_done_callback(lambda _: self.end())


async def serve_stdio(pet: Companion, asker: Asker) -> None:
    """Until stdin ends, or a signal."""
    server = memory_server(pet, lambda _: asker)
    server.middleware.append(underway := Underway())
    lines = Lines(sys.stdin.fileno(), underway)
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, lines.end)
    try:
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (heard, said):
            await server.run(heard, cast(Any, said), server.create_initialization_options())
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
