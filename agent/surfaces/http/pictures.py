"""Take the pictures out of a body in JSON before it is parsed, so that parsing is quick.

`agent.models.pictures` describes what happens to them.
"""

import asyncio
from dataclasses import replace

from agent.models.pictures import MARK, PICTURES, url_of
from agent.surfaces.http.errors import ApiError
from agent.types.client import AN_IMAGE, ClientTurn, MessageItem
from memory.process.spans import new_id

MOST_WITHOUT = 4_000_000
"""Maximum bytes of a JSON body without its pictures."""
MOST_PICTURES = 1_000
SHORT = 10_000
"""A picture of at most this many bytes stays in the body."""
MAX_PICTURE = 25_000_000
"""Maximum bytes of a picture; in base64 it is a third longer."""
_BEGIN = b'"data:image'  # followed by a slash, which some clients escape with a backslash


async def take_pictures(body: bytearray) -> tuple[bytes, dict[str, memoryview]]:
    """Return a JSON body with marks in place of its pictures, and the pictures by mark. Raises ApiError if
    the rest of the body is too long or there are too many pictures."""
    view, pictures, parts = memoryview(body), dict[str, memoryview](), list[memoryview]()
    copied, at, room, urls = 0, 0, MOST_WITHOUT, 0
    while (start := body.find(_BEGIN, at, at + room + len(_BEGIN))) >= 0:
        urls += 1
        if urls > MOST_PICTURES:
            raise ApiError(400, "too_many_pictures", f"the body holds more than {MOST_PICTURES:,} pictures")
        end = body.find(b'"', start + 1)
        # A quote after a backslash belongs to a text that quotes a URL.
        if end < 0 or end - start <= SHORT or b"\\" in (body[start - 1 : start], body[end - 1 : end]):
            room, at = room - (start + 1 - at), start + 1
            continue
        mark = MARK.format(new_id())
        pictures[mark] = view[start + 1 : end]
        parts += (view[copied : start + 1], memoryview(mark.encode()))
        room, copied, at = room - (start + 1 - at), end, end
        await asyncio.sleep(0)  # one step can take some milliseconds, so let other requests run
    if len(body) - at > room:
        message = f"the body is longer than {MOST_WITHOUT:,} bytes without its pictures"
        raise ApiError(413, "too_large", message)
    return b"".join((*parts, view[copied:])), pictures


def fitting(client: ClientTurn, *, as_text: bool) -> ClientTurn:
    """Return the turn with the pictures that are small enough. A new one that is too large raises ApiError.
    One of an earlier message is left out, because clients send it again each time and the chat could not go
    on. `as_text`: the model is not called over HTTP."""
    taken = PICTURES.get()

    def shown(url: str) -> str:
        if too_large(url):
            return AN_IMAGE
        return url_of(url) if as_text else url

    def too_large(url: str) -> int:
        size = len(taken.get(url, b"")) * 3 // 4
        return size if size > MAX_PICTURE else 0

    if size := max(map(too_large, client.images), default=0):
        message = (
            f"an image has {size / 1e6:.1f} MB, and the limit is {MAX_PICTURE / 1e6:g} MB; send a smaller one"
        )
        raise ApiError(413, "image_too_large", message)
    history = client.history and tuple(
        replace(item, images=tuple(map(shown, item.images))) if isinstance(item, MessageItem) else item
        for item in client.history
    )
    return replace(client, images=tuple(map(shown, client.images)), history=history)
