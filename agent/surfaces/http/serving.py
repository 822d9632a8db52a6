"""The server: uvicorn on a socket of ours, stopped gracefully."""

import asyncio
import errno
import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent.errors import BadInput

GRACE = 30
"""Seconds that answers on their way may still take when the server stops."""
HEADERS = 10.0
"""Seconds that the head of a request may take to arrive."""
UNREAD = 30.0
"""Seconds for which a client may take nothing of an answer that waits for it."""
BACKLOG = 2_048
"""Connections that wait to be taken."""
AT_ONCE = 1_000
"""Requests at work at a time; beyond them it is 503."""


class Connection(H11Protocol):
    """Hangs up on who begins a request and does not go on, and on who does not read what was asked for."""

    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def _watch(self) -> None:
        """As long as more of an answer waits than the line takes; also where the connection is to be closed,
        which happens only once all was taken."""
        waiting = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(UNREAD, self._look, waiting)

    def _look(self, waiting: int) -> None:
        if self.transport.get_write_buffer_size() < waiting:
            self._watch()
        else:
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait(self) -> None:
        """As long as the head of a request is not whole."""
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Server(uvicorn.Server):
    """uvicorn raises the signal that stopped it once more at its end, which would end the process before the
    companion is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        """The second time, at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listening(host: str, port: int, option: str = "--port") -> socket.socket:
    """Raises BadInput where that is not possible, which names the option that says the port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)  # of TCP by name: else asyncio leaves Nagle's delay on
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except BaseException:
            made.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = f"; choose another {option}" if getattr(error, "errno", None) == errno.EADDRINUSE else ""
        raise BadInput(f"{host}:{port} cannot be listened on ({reason.lower()}){advice}") from error
    made.listen(BACKLOG)
    made.setblocking(False)
    return made


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(app: Any) -> Server:
    """`await server.serve(sockets=[listener])` serves until a signal, or `should_exit`, stops it and what was
    on its way has been answered."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # addresses name people
        server_header=False,
        proxy_headers=False,
        limit_concurrency=AT_ONCE,
        timeout_graceful_shutdown=GRACE,
    )
    return Server(config)
