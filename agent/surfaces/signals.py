"""Stop a surface on SIGINT and SIGTERM."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop_signal(stop: Callable[[], object], signals: Sequence[signal.Signals] = SIGNALS) -> Iterator[None]:
    """Call `stop` on SIGTERM and Ctrl-C inside the block, instead of ending the process."""
    loop = asyncio.get_running_loop()
    for number in signals:
        with suppress(NotImplementedError, RuntimeError):  # raised on Windows, and outside the main thread
            loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in signals:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)
