"""Take the pictures out of a body in JSON before it is parsed, so that parsing is quick.

`agent.models.pictures` says what becomes of them.
"""

import asyncio
from dataclasses import replace

from agent.models.pictures import MARK, PICTURES, url_of
from agent.surfaces.http.errors import ApiError
from agent.types.client import AN_IMAGE, ClientTurn, MessageItem
from memory.process.spans import new_id

MOST_WITHOUT = 4_000_000
"""Bytes of a body in JSON beside its pictures."""
MOST_PICTURES = 1_000
SHORT = 10_000
"""Bytes of a picture that stays where it is."""
MAX_PICTURE = 25_000_000
"""Bytes of a picture, which has a third more in base64."""
_BEGIN = b'"data:image'  # and a slash, which some write with a backslash


async def take_pictures(body: bytearray) -> tuple[bytes, dict[str, memoryview]]:
    """Return a body in JSON with marks in place of its pictures, and these by their marks. Raises ApiError
    for a body that is too long without them, or has too many."""
    view, pictures, parts = memoryview(body), dict[str, memoryview](), list[memoryview]()
    copied, at, room, urls = 0, 0, MOST_WITHOUT, 0
    while (start := body.find(_BEGIN, at, at + room + len(_BEGIN))) >= 0:
        urls += 1
        if urls > MOST_PICTURES:
            raise ApiError(400, "too_many_pictures", f"the body holds more than {MOST_PICTURES:,} pictures")
        end = body.find(b'"', start + 1)
        # A quote after a backslash is inside a text that quotes a URL.
        if end < 0 or end - start <= SHORT or b"\\" in (body[start - 1 : start], body[end - 1 : end]):
            room, at = room - (start + 1 - at), start + 1
            continue
        mark = MARK.format(new_id())
        pictures[mark] = view[start + 1 : end]
        parts += (view[copied : start + 1], memoryview(mark.encode()))
        room, copied, at = room - (start + 1 - at), end, end
        await asyncio.sleep(0)  # a long one takes some milliseconds
    if len(body) - at > room:
        message = f"the body is longer than {MOST_WITHOUT:,} bytes without its pictures"
        raise ApiError(413, "too_large", message)
    return b"".join((*parts, view[copied:])), pictures


def fitting(client: ClientTurn, *, as_text: bool) -> ClientTurn:
    """Return it with the pictures that are not too large. Raises ApiError for a new one that is; one of an
    earlier message is left out, or the chat, which brings it along each time, could not go on. `as_text` is
    for a model that is not asked over HTTP."""
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
