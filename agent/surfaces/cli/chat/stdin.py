"""Stdin line by line, without blocking the event loop or the end of the program."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress


async def stdin_lines() -> AsyncIterator[str]:
    """A daemon thread waits for each line: a pipe may stay silent for ever. Raises OSError."""
    loop, lines = asyncio.get_running_loop(), _lines()
    while True:
        line: asyncio.Future[str | None] = loop.create_future()
        threading.Thread(target=_read_into, args=(line, lines, loop), daemon=True).start()
        if (text := await line) is None:
            return
        yield text


def _read_into(
    line: "asyncio.Future[str | None]", lines: Iterator[str], loop: asyncio.AbstractEventLoop
) -> None:
    def deliver(text: str | None, error: OSError | None) -> None:
        if line.cancelled():
            return
        if error is not None:
            line.set_exception(error)
        else:
            line.set_result(text)

    found: tuple[str | None, OSError | None]
    try:
        found = next(lines, None), None
    except OSError as error:
        found = None, error
    with suppress(RuntimeError):  # the loop ended while we waited
        loop.call_soon_threadsafe(deliver, *found)


def _lines() -> Iterator[str]:
    """Reads below Python's buffer, whose lock would hang the interpreter when it exits meanwhile."""
    if sys.stdin is None:
        return
    source = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    rest = b""
    while piece := source.read(65_536):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
