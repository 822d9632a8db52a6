"""The server: where it listens, how it stops, and what it does about slow and odd clients."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import BadInput
from agent.surfaces.http.server import address_of, is_loopback, listening, server_of

Serve = Callable[..., Awaitable[Any]]
HOST = b"\r\nhost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("hosts", "loopback"),
    [
        ("127.0.0.1 127.9.9.9 ::1 [::1] localhost LOCALHOST", True),
        ("0.0.0.0 :: 192.168.1.4 example.com localhost.example.com", False),
    ],
)
def test_loopback_is_what_only_this_machine_can_reach(hosts: str, loopback: bool) -> None:
    assert {is_loopback(host) for host in hosts.split()} == {loopback}
    assert not is_loopback("")


def test_an_address_can_be_opened_and_a_port_in_use_is_reported() -> None:
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener) == f"http://127.0.0.1:{port}"
        with pytest.raises(BadInput, match="choose another --port"):
            listening("127.0.0.1", port)
    if socket.has_ipv6:
        try:
            with listening("::1", 0) as listener:
                assert address_of(listener).startswith("http://[::1]:")
        except BadInput:
            pytest.skip("this machine has no IPv6")


async def test_answers_in_progress_are_finished_before_it_stops() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def whole(_: Any) -> Response:
        asked.set()
        await go_on.wait()
        return Response("whole", headers={"connection": "close"})

    app = Starlette(routes=[Route("/", whole)])
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
        assert (await reader.read()).endswith(b"whole")
        await running
        writer.close()
    assert not server.force_exit
    server.stop()
    assert server.force_exit


async def exchange(site: Any, request: bytes, drop: bytes = b"") -> bytes:
    """Everything that comes back until the server hangs up; `drop` is sent every 20 ms meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    reading = asyncio.ensure_future(reader.read())
    try:
        writer.write(request)
        async with asyncio.timeout(5):
            while drop and not reading.done():
                writer.write(drop)
                await asyncio.sleep(0.02)
            return await reading
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def test_a_body_that_drips_is_not_waited_for(serve: Serve) -> None:
    site = await serve(http_timeout=0.3)
    key = b"\r\nauthorization: " + (await site.headers("ana"))["authorization"].encode()
    head = b"POST /v1/chat/completions HTTP/1.1" + HOST + b"transfer-encoding: chunked" + key + b"\r\n\r\n"
    answer = await exchange(site, head, drop=b"1\r\nx\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")  # a client that still sends may not see it
