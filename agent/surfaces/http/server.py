"""Run uvicorn on a socket that Hachi opens, and worker processes that accept connections on the same
socket."""

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import uvicorn

from agent.errors import BadInput
from agent.surfaces.signals import on_stop_signal

log = logging.getLogger("hachi.serve")

STOP_TIMEOUT = 30
"""Seconds that responses in progress have to finish when the server stops."""
KEEP_ALIVE = 75
"""Seconds before an idle connection is closed. Longer than clients keep one open, since a request that is
sent while the connection closes is lost."""
BACKLOG = 2_048
"""Maximum number of connections that wait to be accepted."""
MAX_CONCURRENT = 1_000
"""Maximum number of concurrent connections and tasks; further ones get status 503."""
AGAIN_SECONDS = 1.0
"""Seconds before a worker that died is started again."""


class Server(uvicorn.Server):
    """A uvicorn server that stops on a signal. uvicorn would raise the signal again, which ends the process
    before the companion is closed."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return on_stop_signal(self.stop)

    def stop(self) -> None:
        """Stop after the responses in progress; at once on a second call."""
        self.force_exit = self.should_exit
        self.should_exit = True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listening(host: str, port: int, option: str = "--port") -> socket.socket:
    """Return a listening socket. Raises BadInput, which names `option`, the option that set the port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # without `protocol`, asyncio keeps Nagle's delay
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = f"; choose another {option}" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
        raise BadInput(f"{host}:{port} cannot be listened on ({reason.lower()}){advice}") from error
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(app: Any) -> Server:
    """Return a server. Its `serve(sockets=[listener])` returns after a signal or `stop()`."""
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # access logs would name people, whose names are in addresses
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONCURRENT,
        timeout_graceful_shutdown=STOP_TIMEOUT,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return Server(config)


@asynccontextmanager
async def workers(count: int, listener: socket.socket) -> AsyncIterator[None]:
    """Run `count` more processes during the block. At its end they finish the responses in progress. They
    also end if this process is killed: each reads its stdin, whose other end is here."""
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
    """Return the socket of the first process, and stop this process when that one ends."""

    def watch() -> None:
        os.read(0, 1)  # not sys.stdin: a thread may not hold its lock while the process ends
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    return socket.socket(fileno=listener)
