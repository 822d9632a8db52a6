"""Requests a minute, long bodies, slow clients, and what breaks before an answer."""

import asyncio
from typing import Any

import pytest

from agent.surfaces.http import limits
from agent.surfaces.http.errors import ApiError
from agent.surfaces.http.limits import RateLimiter, RequestLimits


def test_a_minutes_worth_may_be_spent_at_once_and_refills() -> None:
    limiter = RateLimiter(60)
    assert [limiter.acquire("ana", 0.0) for _ in range(60)] == [0.0] * 60
    assert [limiter.acquire("ana", now) for now in (0.0, 0.5, 1.0)] == [1.0, 0.5, 0.0]
    assert limiter.acquire("ana", 1.0) > 0
    assert limiter.acquire("ben", 1.0) == 0.0
    assert limiter.acquire("ana", 1.0 + limiter.acquire("ana", 1.0) + 1e-6) == 0.0
    assert not any(RateLimiter(0).acquire("ana", 0.0) for _ in range(1000))


def test_a_limiter_forgets_who_has_asked_for_nothing_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 2)
    limiter = RateLimiter(1)
    for name in ("ana", "ben", "ana", "cleo"):
        limiter.acquire(name, 0.0)
    assert [limiter.acquire(name, 0.0) > 0 for name in ("ana", "ben")] == [True, False]


Message = dict[str, Any]


def chunk(body: bytes = b"", *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def run(
    app: Any,
    *received: Message,
    content_length: bytes | None = None,
    chunked: bool = False,
    **more: Any,
) -> list[Message]:
    """What is sent for a request whose messages are these; after the last one nothing comes."""
    sent: list[Message] = []
    messages = iter(received or (chunk(),))

    async def receive() -> Message:
        message = next(messages, None)
        return message if message is not None else await asyncio.sleep(60, chunk())

    async def keep(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-length", content_length)] if content_length else []
    headers += [(b"transfer-encoding", b"chunked")] if chunked else []
    limited = RequestLimits(app, max_body=10, **{"authorize": anybody} | more)
    async with asyncio.timeout(60):
        await limited({"type": "http", "headers": headers}, receive, keep)
    return sent


async def anybody(_: Any) -> None:
    """Everybody is let in."""


async def nobody(_: Any) -> None:
    raise ApiError(401, "invalid_api_key", "who is it?")


async def echo(_: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


TOO_LONG = (413, b"too_large")


@pytest.mark.parametrize(
    ("received", "content_length", "expected"),
    [
        ([chunk(b"x" * 10)], b"10", (200, b"x" * 10)),
        ([chunk(b"x" * 5, more=True), chunk(b"y" * 5)], None, (200, b"xxxxxyyyyy")),
        ([chunk(b"x" * 11)], b"11", TOO_LONG),
        ([chunk(b"x" * 5, more=True), chunk(b"x" * 6)], None, TOO_LONG),
        ([], b"101", TOO_LONG),
    ],
)
async def test_a_body_is_read_within_its_limits(received, content_length, expected) -> None:
    start, body, *_ = await run(echo, *received, content_length=content_length)
    assert start["status"] == expected[0]
    assert expected[1] in body["body"]


async def test_so_many_long_bodies_are_kept_at_once_until_they_are_answered(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SHORT_BODY", 4)
    answered, statuses = asyncio.Event(), list[int]()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await answered.wait()
        await echo(scope, receive, send)

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def named(scope: Any) -> str:
        return str(scope["whose"])

    limited = RequestLimits(slow, max_body=10, authorize=named)

    async def ask(whose: str, body: bytes = b"x" * 10) -> None:
        messages = iter([chunk(body[:5], more=True), chunk(body[5:])])

        async def receive() -> Message:
            return next(messages)

        scope = {"type": "http", "headers": [(b"transfer-encoding", b"chunked")], "whose": whose}
        await limited(scope, receive, note)

    each = limits.MOST_BODIES // 2
    waiting = [asyncio.create_task(ask("ana")) for _ in range(each)]
    await asyncio.sleep(0)
    await ask("ana")
    assert statuses == [503], "half is for others"
    waiting += [asyncio.create_task(ask(whose)) for whose in ("ben", "cleo")[:each]]
    await asyncio.sleep(0)
    await ask("dan")
    assert statuses == [503, 503]
    waiting.append(asyncio.create_task(ask("dan", b"xxxx")))
    answered.set()
    await asyncio.gather(*waiting)
    await ask("ana")
    assert statuses == [503, 503, *[200] * (limits.MOST_BODIES + 2)]


@pytest.mark.parametrize("content_length", [None, b"1"])
async def test_of_somebody_unknown_little_is_kept_or_nothing(content_length: bytes | None) -> None:
    head = {"content_length": content_length, "chunked": content_length is None, "authorize": nobody}
    start, *_ = await run(echo, chunk(b"xxxx"), **head)
    assert start["status"] == 401
    for body, status in ((b"xxxx", 200), (b"xxxxx", 413)):
        start, *_ = await run(echo, chunk(body), **head, max_unknown=4)
        assert start["status"] == status


async def test_a_client_that_disconnects_gets_no_answer_and_a_lifespan_passes() -> None:
    assert await run(echo, chunk(b"x", more=True), {"type": "http.disconnect"}) == []
    seen = []

    async def app(scope: Any, _: Any, __: Any) -> None:
        seen.append(scope["type"])

    await RequestLimits(app, max_body=10, authorize=anybody)({"type": "lifespan"}, echo, echo)  # type: ignore[arg-type]
    assert seen == ["lifespan"]


@pytest.mark.parametrize("started", [False, True])
async def test_an_unexpected_error_is_one_line_and_adds_nothing_to_an_answer(started: bool) -> None:
    async def broken(_: Any, __: Any, send: Any) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("a secret")

    start, *body = await run(broken)
    assert (start["status"], len(body)) == ((200, 0) if started else (500, 1))
    assert all(b"internal_error" in part["body"] and b"secret" not in part["body"] for part in body)
