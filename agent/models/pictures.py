"""Sends pictures to a model as the bytes that they came in.

A picture of 25 MB as text would be parsed, copied and written as JSON many times in a turn, each time for
tenths of a second in which nobody else is served. So a surface takes it out of what it reads, and leaves a
mark: the prompt, the SDK and the trace have the mark, and the request to the model's server gets the bytes.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar

import httpx2

PICTURES: ContextVar[Mapping[str, memoryview]] = ContextVar("pictures", default={})  # noqa: B039 - never changed
"""By its mark, each picture of the request that is answered: what stands between the quotes in its JSON."""
MARK = "data:image/[picture {}]"
_MARKED = re.compile(rb'"(data:image/\[picture [0-9a-f-]{36}\])"')
PIECE = 256 * 1024
"""Bytes that are written at once."""


def url_of(mark: str) -> str:
    """Return the picture's URL as text, for a model that the program brought; any other text as it is."""
    picture = PICTURES.get().get(mark)
    return mark if picture is None else str(json.loads(b'"%b"' % picture.tobytes()))


async def put_pictures(request: httpx2.Request) -> None:
    """Put the pictures of the request that is answered in the place of their marks: a hook of the client."""
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
