"""The server itself: where it listens, and how it stops."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.errors import BadInput
from agent.surfaces.http.server import address_of, is_loopback, listening, server_of

Serve = Callable[..., Awaitable[Any]]


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.4", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_what_only_this_machine_can_reach(host: str, alone: bool) -> None:
    assert is_loopback(host) == alone


def test_an_address_is_shown_as_it_can_be_opened() -> None:
    with listening("127.0.0.1", 0) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
    if socket.has_ipv6:
        try:
            with listening("::1", 0) as listener:
                assert address_of(listener).startswith("http://[::1]:")
        except BadInput:
            pytest.skip("this machine has no IPv6")


def test_what_cannot_be_listened_on_is_told() -> None:
    with listening("127.0.0.1", 0) as listener, pytest.raises(BadInput, match="choose another --port"):
        listening("127.0.0.1", listener.getsockname()[1])


async def test_an_answer_on_its_way_is_finished_before_it_stops() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked.set()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    with listening("127.0.0.1", 0) as listener:
        server = server_of(app)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await asked.wait()
        server.stop()
        await asyncio.sleep(0.15)
        assert not running.done()
        go_on.set()
        assert (await reader.read()).endswith(b"whole\r\n0\r\n\r\n")
        await running
        writer.close()
    assert not server.force_exit
    server.stop()
    assert server.force_exit
