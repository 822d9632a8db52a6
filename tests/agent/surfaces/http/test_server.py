"""The server: where it listens, how it stops, and what it does about slow and odd clients."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import BadInput
from agent.services.conversations import ConversationService
from agent.surfaces.http import server as http_server
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


def test_an_idle_connection_stays_open_longer_than_clients_keep_one() -> None:
    config = server_of(Starlette()).config

    assert config.timeout_keep_alive >= 10 * (httpx2.Limits().keepalive_expiry or 0)


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


async def test_a_connection_whose_request_stays_incomplete_is_closed(site: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    sent = [
        (b"", b""),
        (b"GET /healthz HTT", b""),
        (b"GET /healthz HTTP/1.1" + HOST + b"x-more: ", b"x"),
        (b"GET /healthz HTTP/1.1" + HOST + b"\r\n", b"x"),  # the second request
    ]
    answers = await asyncio.gather(*(exchange(site, begun, drop=drop) for begun, drop in sent))
    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 200") for answer in answers)


async def test_a_body_that_drips_is_not_waited_for(serve: Serve) -> None:
    site = await serve(http_timeout=0.3)
    key = b"\r\nauthorization: " + (await site.headers("ana"))["authorization"].encode()
    head = b"POST /v1/chat/completions HTTP/1.1" + HOST
    kinds = ((b"content-length: 900", b"x"), (b"transfer-encoding: chunked", b"1\r\nx\r\n"))
    sent = ((head + kind + key + b"\r\n\r\n", drop) for kind, drop in kinds)
    answers = await asyncio.gather(*(exchange(site, begun, drop=drop) for begun, drop in sent))
    for answer in answers:  # a client that still sends may not see it
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


async def test_a_client_that_never_reads_is_disconnected(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its connection is to be closed, with an answer still waiting to be read."""
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.2)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", site.port))
        client.setblocking(False)
        address = client.getsockname()

        def connected() -> bool:
            connections = site.server.server_state.connections
            return any(connection.client == address for connection in connections)

        request = b"GET /openapi.json HTTP/1.1" + HOST + b"\r\n"
        sending = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(client, request * 2_000))
        async with asyncio.timeout(60):
            for wanted in (True, False):
                while connected() != wanted:  # noqa: ASYNC110 - the server has no event to wait for
                    await asyncio.sleep(0.02)
        sending.cancel()


async def test_a_client_that_reads_slowly_gets_all_of_it(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT", 0.2)
    text = "I row. " * 300_000

    async def export(*_: Any, **__: Any) -> Any:
        return {"text": text}

    monkeypatch.setattr(ConversationService, "export", export)
    key = (await site.headers("ivy"))["authorization"].encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.connect(("127.0.0.1", site.port))
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        request = b"GET /api/users/ivy/export HTTP/1.1" + HOST + b"authorization: " + key + b"\r\n"
        await loop.sock_sendall(client, request + b"connection: close\r\n\r\n")
        read = b""
        async with asyncio.timeout(60):
            while piece := await loop.sock_recv(client, 131_072):
                read += piece
                await asyncio.sleep(0.02)
    assert len(read) > len(text)
