"""`hachi serve --workers N`: further processes that accept connections on one listening socket."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger("hachi.serve")

AGAIN_SECONDS = 1.0
"""Before a worker that ended by itself is started again."""


@asynccontextmanager
async def workers(count: int, listener: socket.socket) -> AsyncIterator[None]:
    """Keep `count` processes beside this one. They end with the block, after their responses in progress, and
    they end if this process is killed: each reads its stdin, whose other end is here."""
    keeping = [asyncio.create_task(_keep(listener.fileno())) for _ in range(count)]
    try:
        yield
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


async def _keep(listener: int) -> None:
    command = [sys.executable, "-m", "hachi", "serve", "--listener", str(listener)]
    while True:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, pass_fds=[listener]
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        log.error("worker %d ended with %d and is started again", process.pid, code)
        await asyncio.sleep(AGAIN_SECONDS)


def inherited(listener: int) -> socket.socket:
    """Return the socket that the first process listens on, and stop this one when that one has ended."""

    def watch() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock a thread may not hold while the process ends
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    return socket.socket(fileno=listener)
