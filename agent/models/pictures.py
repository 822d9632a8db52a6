"""Send pictures to a model as the bytes in which they were received.

A picture of 25 MB as text would be parsed, copied and written as JSON many times in a turn, each time for
tenths of a second in which nobody else is served. So a surface replaces it with a mark. The prompt, the SDK
and the trace have the mark; the request to the model's server gets the bytes.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar

import httpx2

PICTURES: ContextVar[Mapping[str, memoryview]] = ContextVar("pictures", default={})  # noqa: B039 - never changed
"""The pictures of the current request by mark, as the bytes between the quotes in its JSON."""
MARK = "data:image/[picture {}]"
_MARKED = re.compile(rb'"(data:image/\[picture [0-9a-f-]{36}\])"')
PIECE = 256 * 1024
"""Bytes in one write."""


def url_of(mark: str) -> str:
    """Return the picture's URL as text, for a program's own model; return any other text unchanged."""
    picture = PICTURES.get().get(mark)
    return mark if picture is None else str(json.loads(b'"%b"' % picture.tobytes()))


async def put_pictures(request: httpx2.Request) -> None:
    """Replace marks with the pictures of the current request: a hook of the HTTP client."""
    pictures = PICTURES.get()
    if not pictures or not isinstance(request.stream, httpx2.ByteStream):
        return
    parts = list(_parts(request.content, pictures))
    if len(parts) > 1:
        request.stream = _Parts(parts)
        request.headers["content-length"] = str(sum(map(len, parts)))


def _parts(content: bytes, pictures: Mapping[str, memoryview]) -> Iterator[memoryview]:
    at, view = 0, memoryview(content)
    for mark in _MARKED.finditer(content):
        if picture := pictures.get(mark[1].decode()):
            yield from (view[at : mark.start(1)], picture)
            at = mark.end(1)
    yield view[at:]


class _Parts(httpx2.AsyncByteStream):
    def __init__(self, parts: list[memoryview]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            for at in range(0, len(part), PIECE):
                yield bytes(part[at : at + PIECE])
