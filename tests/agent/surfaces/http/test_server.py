"""The server: where it listens, how it stops, and that it finishes answers."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import BadInput
from agent.surfaces.http import limits
from agent.surfaces.http.errors import ApiError
from agent.surfaces.http.limits import RequestLimits
from agent.surfaces.http.server import address_of, is_loopback, listening, server_of


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


LIMIT, BODY = 1_000_000, b"x" * 20_000_000
"""What a body may have, and one that no buffer of the system holds."""


async def admit(scope: Any) -> str:
    if scope["path"] == "/unknown":
        raise ApiError(401, "invalid_api_key", "no such key")
    return ""


@asynccontextmanager
async def limited_server() -> AsyncIterator[int]:
    app = RequestLimits(Starlette(), max_body=LIMIT, authorize=admit)
    with listening("127.0.0.1", 0) as listener:
        server = server_of(app)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.stop()
        await running


def send_all_first(port: int, head: str, body: bytes) -> bytes:
    """Send the whole request before reading: what the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"POST {head}\r\nhost: x\r\n\r\n".encode() + body)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        return answer


CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (f"/ HTTP/1.1\r\ncontent-length: {len(BODY)}", BODY, b"413"),
        ("/ HTTP/1.1\r\ntransfer-encoding: chunked", CHUNKED, b"413"),
        (f"/unknown HTTP/1.1\r\ncontent-length: {len(BODY)}", BODY, b"401"),
    ],
)
async def test_a_client_that_sends_all_first_reads_why_it_was_refused(
    head: str, body: bytes, status: bytes
) -> None:
    async with limited_server() as port:
        answer = await asyncio.to_thread(send_all_first, port, head, body)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.endswith(b"}}")
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            path, _, _ = head.partition(" ")
            assert (await client.post(path, content=body)).status_code == int(status)


async def test_a_refused_body_without_an_end_is_not_read_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_DISCARDED", 2_000_000)
    monkeypatch.setattr(limits, "NEXT_PIECE_SECONDS", 0.2)
    head = f"/ HTTP/1.1\r\ncontent-length: {len(BODY)}"
    async with limited_server() as port:
        answer = await asyncio.to_thread(send_all_first, port, head, b"slow")
        assert answer.startswith(b"HTTP/1.1 413")
        with pytest.raises(OSError, match=r"reset|closed|pipe"):
            await asyncio.to_thread(send_all_first, port, head, BODY)
