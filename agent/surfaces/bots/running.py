"""Stopping a bot process."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """Set the event on SIGTERM and Ctrl-C inside the block, so that replies in progress can finish."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        with suppress(NotImplementedError, RuntimeError):  # on Windows, or outside the main thread
            loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in SIGNALS:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)
