"""The server: where it listens, how it stops, and that it finishes answers."""

import asyncio
import socket
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import BadInput
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
