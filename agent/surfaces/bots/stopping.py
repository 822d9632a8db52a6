"""How a bot is told to stop."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping(stop: asyncio.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C set the event instead, so that what is being answered is finished."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
            loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in SIGNALS:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)
