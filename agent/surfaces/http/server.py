"""Runs uvicorn on a socket that Hachi opens, with time limits for slow clients."""

import errno
import ipaddress
import socket
from asyncio import TimerHandle
from contextlib import AbstractContextManager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent.errors import BadInput
from agent.surfaces.signals import on_stop_signal

STOP_TIMEOUT = 30
"""Seconds that responses in progress get when the server stops."""
KEEP_ALIVE = 75
"""Seconds after which an idle connection is closed: longer than clients keep one, since a request that meets
the end of its connection is lost."""
HEAD_TIMEOUT = 10.0
"""Seconds for the head of a request to arrive."""
WRITE_TIMEOUT = 30.0
"""Seconds for which a client may leave a waiting response unread."""
BACKLOG = 2_048
"""Connections that wait to be accepted."""
MAX_CONCURRENT = 1_000
"""Concurrent connections and tasks; more get status 503."""


class Connection(H11Protocol):
    """Aborts a connection whose request head stays incomplete, or whose client does not read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: TimerHandle | None = None
        self._write_timer: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_write()

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().resume_writing()

    def _watch_head(self) -> None:
        waiting = self.conn.their_state is h11.IDLE
        if waiting and self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)
        elif not waiting and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _watch_write(self) -> None:
        """Watch also while the connection closes, because closing waits until everything is read."""
        waiting = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._watch_write()
            else:
                self.transport.abort()

        self._write_timer = self.loop.call_later(WRITE_TIMEOUT, check)


class Server(uvicorn.Server):
    """uvicorn's own signal handlers raise the signal again at the end, which would end the process before the
    companion is closed."""

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
    """Return a listening socket. Raises BadInput, which names the option that set the port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # without protocol asyncio keeps Nagle's delay
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
    """`await server.serve(sockets=[listener])` returns after a signal or `stop()`."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # no access log: addresses name people
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONCURRENT,
        timeout_graceful_shutdown=STOP_TIMEOUT,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return Server(config)
