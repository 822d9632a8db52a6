"""Stdin line by line, without blocking the event loop or the end of the program."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress


async def stdin_lines() -> AsyncIterator[str]:
    """A daemon thread reads, because a pipe may stay silent for ever. Raises OSError."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | OSError | None] = asyncio.Queue()

    def deliver() -> None:
        with suppress(RuntimeError):  # the loop has ended
            try:
                for line in _lines():
                    loop.call_soon_threadsafe(lines.put_nowait, line)
                loop.call_soon_threadsafe(lines.put_nowait, None)
            except OSError as error:
                loop.call_soon_threadsafe(lines.put_nowait, error)

    threading.Thread(target=deliver, daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, OSError):
            raise line
        yield line


def _lines() -> Iterator[str]:
    """Read through a buffer of our own: the interpreter, when it exits, waits for the lock of Python's."""
    if sys.stdin is not None:
        with open(
            sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False
        ) as text:
            yield from text
