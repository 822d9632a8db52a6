"""Bodies that are too long, clients that are too slow, and what breaks before anything else."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from agent.surfaces.http import server as http_server
from agent.surfaces.http.limits import RequestLimits

Serve = Callable[..., Awaitable[Any]]


async def connect(site: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))


async def rest(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def test_a_long_body_is_refused_by_its_announcement(serve: Serve) -> None:
    site = await serve(http_max_body=1_000)
    answer = await site.client.post("/v1/chat/completions", content=b"x" * 1_001)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert (await site.client.post("/v1/chat/completions", content=b"x" * 1_000)).status_code == 401


async def test_a_long_body_that_is_not_announced_is_refused_too(serve: Serve) -> None:
    site = await serve(http_max_body=1_000)

    async def pieces() -> Any:
        for _ in range(20):
            yield b"x" * 100

    answer = await site.client.post("/v1/chat/completions", content=pieces())
    assert answer.status_code == 413


@pytest.mark.parametrize("head", [b"content-length: 100000000", b"transfer-encoding: chunked"])
async def test_who_never_ends_is_not_heard_out(serve: Serve, head: bytes) -> None:
    site = await serve(http_max_body=1_000)
    reader, writer = await connect(site)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n\r\n")
    if b"chunked" in head:
        writer.write((b"64\r\n" + b"x" * 100 + b"\r\n") * 110)
    async with asyncio.timeout(10):
        assert b"413" in await reader.readline()
    writer.transport.abort()


async def test_who_is_slow_to_send_is_not_waited_for(serve: Serve) -> None:
    site = await serve(http_timeout=0.1)
    reader, writer = await connect(site)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nab")
    answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in answer
    writer.close()


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTT"])
async def test_who_does_not_finish_a_request_is_hung_up_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.1)
    site = await serve()
    reader, writer = await connect(site)
    writer.write(begun)
    assert await rest(reader) == b""
    writer.close()


async def test_a_second_request_that_is_not_finished_is_hung_up_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.2)
    site = await serve()
    reader, writer = await connect(site)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    assert b"200" in await reader.readuntil(b"}")
    writer.write(b"GET /heal")
    assert await rest(reader) == b""
    writer.close()


async def test_who_hangs_up_in_the_middle_costs_nothing(serve: Serve) -> None:
    site = await serve()
    _, writer = await connect(site)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nab")
    await writer.drain()
    writer.transport.abort()
    assert (await site.client.get("/healthz")).status_code == 200


def receiving(*messages: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
    coming: Iterator[dict[str, Any]] = iter(messages)

    async def receive() -> Any:
        return next(coming)

    return receive


async def through(guard: RequestLimits, *, send: Any = None) -> list[Any]:
    sent: list[Any] = []

    async def keep(message: Any) -> None:
        sent.append(message)

    await guard({"type": "http", "headers": []}, receiving({"type": "http.request"}), send or keep)
    return sent


async def test_what_breaks_before_the_answer_is_answered() -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    begin, body = await through(RequestLimits(broken, max_body=10, timeout=1))
    assert begin["status"] == 500
    assert b"internal_error" in body["body"]
    assert b"secret" not in body["body"]


async def test_what_breaks_in_the_middle_of_an_answer_adds_nothing_to_it() -> None:
    async def broken(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("a secret")

    assert [message["type"] for message in await through(RequestLimits(broken, max_body=10, timeout=1))] == [
        "http.response.start"
    ]


async def test_who_does_not_read_the_answer_is_given_up() -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def never(_: Any) -> None:
        await asyncio.sleep(60)

    async with asyncio.timeout(10):
        await through(RequestLimits(app, max_body=10, timeout=0.05), send=never)


async def test_what_is_no_request_passes() -> None:
    seen = []

    async def app(scope: Any, _: Any, __: Any) -> None:
        seen.append(scope["type"])

    await RequestLimits(app, max_body=10, timeout=1)({"type": "lifespan"}, receiving(), receiving())
    assert seen == ["lifespan"]
