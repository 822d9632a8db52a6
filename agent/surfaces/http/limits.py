"""Limit the requests a minute, the bytes of a body, and the bytes of all bodies in flight.

A body is read only after the request has been authorised, and parsed without its pictures. Slow clients, and
clients that go on sending after a refusal, are left to a reverse proxy.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.models.pictures import PICTURES
from agent.surfaces.http.errors import IMAGE_URL, ApiError, error_response
from agent.surfaces.http.pictures import take_pictures

MAX_BODY = 60_000_000
"""Maximum bytes of a body. A reverse proxy may have a lower limit."""
TEXT = 400_000
"""Maximum characters of one text. A model reads at most this much of what a client sends."""
SHORT_BODY = 100_000
"""A body of at most this many bytes is read whatever else is in flight, and parsed with its pictures."""
MOST_BODIES = 4
"""How many bodies of the greatest size may be in memory at once. A body stays there until it is answered."""
MOST_BUCKETS = 10_000
"""Maximum number of people that a limiter counts. The ones whose last request is oldest are dropped."""


def sendable(value: Any) -> Any:
    """Return the value. Raises ValueError if it cannot be written as JSON."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise ValueError("it holds a number that is none in JSON, or is nested too deep") from None
    return value


Id = Annotated[str, Field(max_length=200)]
"""An id, or the name of a model, a tool or a conversation."""
CallId = Annotated[str, Field(max_length=10_000)]
"""The id of a call. It may be long: some gateways put a signature of the model's thoughts into it."""
Text = Annotated[str, Field(max_length=TEXT)]
ImageUrl = Annotated[str, Field(pattern=IMAGE_URL, max_length=SHORT_BODY)]
"""The model's server fetches this URL, so only pictures and https are passed on. Long pictures were taken out
before."""
StopText = Annotated[str, Field(min_length=1, max_length=256)]
FreeObject = Annotated[dict[str, Any], Field(max_length=1_000), AfterValidator(sendable)]
"""An object of the client's own."""
MOST_STOPS, MOST_PARTS, MOST_TOOLS, MOST_MESSAGES = 4, 1_000, 128, 10_000


class StrictBody(BaseModel):
    """A body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimiter:
    """Counts requests in a token bucket for each person. A bucket holds the tokens of one minute; 0 means no
    limit. Each process counts separately."""

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
    """Reads the whole body before the application runs, and answers an unexpected error in one line.

    `authorize` is called before a body is read. It returns whose body it is, or raises ApiError. `max_body`
    is in bytes; MOST_BODIES times as many may be in flight, at most half of them for one person. An
    application that refuses requests itself sets `max_unknown`: that many bytes are read from callers that
    `authorize` refuses.
    """

    app: ASGIApp = field(kw_only=False)
    max_body: int
    authorize: Callable[[Scope], Awaitable[str]]
    max_unknown: int = 0
    _in_flight: Counter[str] = field(default_factory=Counter, init=False)
    """Bytes of the bodies that are not answered yet, by person."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body, pictures, whose, started = bytearray(), dict[str, memoryview](), "", False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            whose, most = await self._allowed(scope)
            await self._read(scope, receive, whose, most, body)
            parsed: bytes | bytearray = body
            if len(body) > SHORT_BODY and "json" in Headers(scope=scope).get("content-type", "").lower():
                parsed, pictures = await take_pictures(body)
            messages: Iterator[Message] = iter([{"type": "http.request", "body": parsed, "more_body": False}])

            async def replay() -> Message:
                return next(messages, None) or await receive()

            PICTURES.set(pictures)
            await self.app(scope, replay, note_start)
        except ClientDisconnect:
            return None
        except Exception as error:
            response = error_response(error)  # logs the error if it is unexpected
            response.headers.update({"cache-control": "no-store", "connection": "close"})
            if not started:
                await response(scope, receive, send)
        finally:
            pictures.clear()  # background tasks that this request started keep its context
            self._in_flight[whose] -= len(body)
            self._in_flight += Counter()  # drops the entries that are zero

    async def _allowed(self, scope: Scope) -> tuple[str, int]:
        """Return whose body it is, and how many bytes it may have. Raises ApiError."""
        headers = Headers(scope=scope)
        has_body = "transfer-encoding" in headers or _content_length(headers) > 0
        try:
            return await self.authorize(scope) if has_body else "", self.max_body
        except ApiError:
            if not self.max_unknown:
                raise
            return "", self.max_unknown

    async def _read(self, scope: Scope, receive: Receive, whose: str, most: int, body: bytearray) -> None:
        """Fill in the body. Raises ApiError, ClientDisconnect."""
        too_long = ApiError(413, "too_large", f"the body is longer than {most:,} bytes")
        if _content_length(Headers(scope=scope)) > most:
            raise too_long
        async for piece in Request(scope, receive).stream():
            body += piece
            self._in_flight[whose] += len(piece)
            if len(body) > most:
                raise too_long
            room = MOST_BODIES * self.max_body
            full = self._in_flight.total() > room or self._in_flight[whose] > room // 2
            if len(body) > SHORT_BODY and full:
                raise ApiError(
                    503, "busy", "too much is sent at once; try again", headers={"retry-after": "1"}
                )


def _content_length(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isdigit() else 0
