"""What stands before everything else: how long a body may be, how long a client may take, and that whatever
breaks is answered with one line.
"""

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.surfaces.http.refusals import body, broken

HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
]

HEARD_OUT = 10
"""So many times the longest body are taken from the line before it is hung up."""


class Guard:
    """ASGI middleware: reads the whole body before anything is done with it."""

    def __init__(self, app: ASGIApp, *, longest: int, seconds: float) -> None:
        self._app = app
        self._longest = longest
        """Bytes of a body."""
        self._seconds = seconds
        """For which a client may send its body, or not read a piece of the answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        refused = None
        data = b""
        try:
            async with asyncio.timeout(self._seconds):
                data = await self._read(scope, receive)
        except TimeoutError:
            refused = _refusal(408, "request_timeout", "the request took too long to arrive")
        except _TooLong:
            refused = _refusal(413, "too_large", f"the body is longer than {self._longest:,} bytes")
        except _Gone:
            return None
        if refused is not None:
            return await _answer(send, *refused)
        return await self._guarded(scope, _replaying(data, receive), send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            async with asyncio.timeout(self._seconds):  # who does not read is not waited for
                await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if begun and isinstance(error, TimeoutError | ConnectionError):
                return  # the client has gone, or does not read
            status, answer = broken(error)
            if not begun:
                await _answer(send, status, answer)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Whoever sends a little too much is heard out, and hears why it is refused; an answer in the middle
        of what they send they might never see."""
        most = self._longest * HEARD_OUT
        if _announced(scope) > most:
            raise _TooLong
        pieces, length = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            piece = message.get("body", b"")
            length += len(piece)
            if length <= self._longest:
                pieces.append(piece)
            if length > most or (length > self._longest and not message.get("more_body")):
                raise _TooLong
            if not message.get("more_body"):
                return b"".join(pieces)


def _announced(scope: Scope) -> int:
    """How long the client says that the body is."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


class _TooLong(Exception):
    pass


class _Gone(Exception):
    """The client hung up before its request was whole."""


def _replaying(data: bytes, receive: Receive) -> Receive:
    """The body in one piece; then whatever comes, which is that the client leaves."""
    handed = False

    async def replay() -> Message:
        nonlocal handed
        if handed:
            return await receive()
        handed = True
        return {"type": "http.request", "body": data, "more_body": False}

    return replay


def _refusal(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, body(message, "invalid_request_error", code)


async def _answer(send: Send, status: int, content: dict[str, Any]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": HEADERS})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})
