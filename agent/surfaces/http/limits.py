"""Limits the use of the server: requests per minute, the size of a body and of all that arrive at once, its
fields and values, and time. A body is read only after the request has been authenticated; before it is parsed
its pictures are taken out and its values are counted."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.errors import HachiError
from agent.models.pictures import PICTURES
from agent.surfaces.http.errors import IMAGE_URL, ApiError, error_response
from agent.surfaces.http.pictures import take_pictures

MOST_VALUES, DEEPEST = 50_000, 60
"""Values in the JSON of a body, and how deep they may be in each other."""
TEXT = 400_000
"""Characters of one text, which is at most all that a model is given of what a client sends."""

SHORT_BODY = 100_000
"""Bytes of a body that is read however many others are, as connections are limited, and parsed as it is."""

Id = Annotated[str, Field(max_length=200)]
"""An id, or the name of a model, a tool or a conversation."""
CallId = Annotated[str, Field(max_length=10_000)]
"""The id of a call: some gateways keep a signature of the model's thoughts in it."""
Text = Annotated[str, Field(max_length=TEXT)]
ImageUrl = Annotated[str, Field(pattern=IMAGE_URL, max_length=SHORT_BODY)]
"""The server of the model fetches it, so nothing but pictures and https is passed on. Long pictures were
taken out."""
StopText = Annotated[str, Field(min_length=1, max_length=256)]
Free = Annotated[dict[str, Any], Field(max_length=1_000)]
"""An object of the client's own."""
MOST_STOPS, MOST_PARTS, MOST_TOOLS, MOST_MESSAGES = 4, 1_000, 128, 10_000


class Strict(BaseModel):
    """A body without other fields than its own."""

    model_config = ConfigDict(extra="forbid")


_STEPS = {ord(bracket): step for brackets, step in (("[{", 1), ("]}", -1)) for bracket in brackets}
_NO_BRACKET = bytes(set(range(256)) - _STEPS.keys())
_ODD_NUMBER = re.compile(rb"NaN|Infinity|\d+(?:\.\d+)?[eE]\+?\d+|\d{300,}")
"""What Python may read as a number that is none in JSON, or that no float holds."""

READ_BEFORE_CLOSING = 2
"""A body up to this many times the maximum is read to its end before the connection closes."""
MOST_BODIES = 4
"""So many of the longest bodies are kept at once, until they are answered."""
AGAIN = {"retry-after": "1"}
MOST_BUCKETS = 10_000
"""Keys or addresses that a limiter counts; the ones unused for longest are dropped."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimiter:
    """A token bucket for each key, with the size of one minute's requests; 0 per minute means no limit. Each
    process counts separately."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = float(per_minute)
        self._buckets: dict[str, _Bucket] = {}

    def acquire(self, key: str, now: float) -> float:
        """Take a token and return 0.0, or return the seconds until the next one. `now` is a monotonic time in
        seconds."""
        if not self._per_minute:
            return 0.0
        bucket = self._buckets.pop(key, None) or _Bucket(self._per_minute, now)
        self._buckets[key] = bucket
        if len(self._buckets) > MOST_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        refilled = bucket.tokens + (now - bucket.at) * self._per_minute / 60
        bucket.tokens, bucket.at = min(self._per_minute, refilled), now
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) * 60 / self._per_minute
        bucket.tokens -= 1.0
        return 0.0


@dataclass(kw_only=True)
class RequestLimits:
    """ASGI middleware that reads the whole body before the application runs, and answers an unexpected error
    with one line. `authorize` is called before a body is read; it returns whose it is, or raises ApiError to
    refuse it. `max_body` is in bytes, and MOST_BODIES times as many are kept at once, half of them of one
    person; `timeout` in seconds, for the whole body.

    `max_unknown` is for an application that refuses a request itself, or whose body may hold the key: of whom
    `authorize` refuses it gets a body of that many bytes, and an empty one in place of a longer.
    """

    app: ASGIApp = field(kw_only=False)
    max_body: int
    timeout: float
    authorize: Callable[[Scope], Awaitable[str]]
    max_unknown: int = 0
    _in_flight: Counter[str] = field(default_factory=Counter, init=False)
    """Bytes of the bodies that are not answered yet, by whose they are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body, pictures, whose = bytearray(), dict[str, memoryview](), ""
        read: bytes | bytearray = body
        try:
            whose, most = await self._most_kept(scope)
            await self._read(scope, receive, whose, most, body)
            if b"json" in _header(scope, b"content-type"):
                read, pictures = await _checked(body)
        except ClientDisconnect:
            return None
        except (ApiError, HachiError) as error:
            return await _close(error_response(error))(scope, receive, send)
        else:
            messages: Iterator[Message] = iter([{"type": "http.request", "body": read, "more_body": False}])

            async def replay() -> Message:
                return next(messages, None) or await receive()

            PICTURES.set(pictures)
            await self._run(scope, replay, send)
        finally:
            pictures.clear()  # tasks that go on, begun in this request, keep its context for good
            self._drop(whose, len(body))

    async def _most_kept(self, scope: Scope) -> tuple[str, int]:
        """Return whose a body is, and how many bytes of it are kept. Raises ApiError."""
        try:
            return await self.authorize(scope) if _has_body(scope) else "", self.max_body
        except ApiError:
            if not self.max_unknown:
                raise
            return "", self.max_unknown

    async def _read(self, scope: Scope, receive: Receive, whose: str, keep: int, body: bytearray) -> None:
        """Fill in the body; an empty one if it is longer than `keep`. Raises ApiError, ClientDisconnect.

        A body that is slightly too long, or comes with too many others, is read to its end, because a client
        that is still sending might never see the response.
        """
        too_long = ApiError(413, "too_large", f"the body is longer than {self.max_body:,} bytes")
        most = self.max_body * READ_BEFORE_CLOSING
        if _content_length(scope) > most:
            raise too_long
        length, busy = 0, False
        try:
            async with asyncio.timeout(self.timeout):
                async for piece in Request(scope, receive).stream():
                    length += len(piece)
                    body += piece
                    self._in_flight[whose] += len(piece)
                    busy = busy or (length > SHORT_BODY and not self._has_room(whose))
                    if busy or length > keep:
                        self._drop(whose, len(body))
                        body.clear()
                    if length > most:
                        raise too_long
        except TimeoutError:
            raise ApiError(408, "request_timeout", "the request took too long to arrive") from None
        if length > self.max_body:
            raise too_long
        if busy:
            raise ApiError(503, "busy", "too much is sent at once; try again", headers=AGAIN)

    def _has_room(self, whose: str) -> bool:
        most = MOST_BODIES * self.max_body
        return self._in_flight.total() <= most and self._in_flight[whose] <= most // 2

    def _drop(self, whose: str, length: int) -> None:
        self._in_flight[whose] -= length
        if not self._in_flight[whose]:
            del self._in_flight[whose]

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, note_start)
        except Exception as error:
            response = error_response(error)  # logs it
            if not started:
                await _close(response)(scope, receive, send)


async def _checked(body: bytearray) -> tuple[bytes | bytearray, dict[str, memoryview]]:
    """Return a body in JSON without its pictures, and these. Raises ApiError. What takes long is done in
    pieces, between which others are served."""
    if len(body) <= SHORT_BODY:
        check_json(body)
        return body, {}
    rest, pictures = await take_pictures(body)
    await asyncio.to_thread(check_json, rest)
    return rest, pictures


def _close(response: JSONResponse) -> JSONResponse:
    response.headers.update({"cache-control": "no-store", "connection": "close"})
    return response


def _has_body(scope: Scope) -> bool:
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return chunked or _content_length(scope) > 0


def _content_length(scope: Scope) -> int:
    length = _header(scope, b"content-length")
    return int(length) if length.isdigit() else 0


def _header(scope: Scope, name: bytes) -> bytes:
    """Return the first value of a header, in small letters."""
    values: list[bytes] = [value.lower() for key, value in scope["headers"] if key == name]
    return values[0] if values else b""


def check_json(body: bytes | bytearray) -> None:
    """Raise ApiError for JSON with more values than can be read in a moment, nested too deep, or with a
    number that could not be sent on. What is no JSON may pass."""
    if b"\0" in body:  # UTF-16 and UTF-32, which Python reads too, have one in each bracket
        raise ApiError(400, "not_utf_8", "the body must be JSON in UTF-8")
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    values = plain.count(b'"') // 2  # a key is counted too
    if values <= 2 * MOST_VALUES:
        outside = b"".join(plain.split(b'"')[::2])
        values = max(sum(map(outside.count, some)) for some in ((b",", b"[", b"{"), (b"]", b"}")))
    if values > MOST_VALUES:
        raise ApiError(400, "too_many_values", f"the body holds more than {MOST_VALUES:,} values; send less")
    brackets = outside.translate(None, _NO_BRACKET)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > DEEPEST:
        raise ApiError(400, "too_deep", f"the body is nested more than {DEEPEST} levels deep")
    if not all(isfinite(float(number)) for number in _ODD_NUMBER.findall(outside)):
        raise ApiError(
            400, "json_invalid", "the body is not JSON: it holds a number that is none, or too large"
        )
