"""How much a request may hold: the one place for it. Each field of a body has such a limit, and the values of
a body in JSON are counted before it is read."""

from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from agent.surfaces.http.errors import IMAGE_URL, ApiError

MOST_VALUES, DEEPEST = 50_000, 60
"""Values in the JSON of a body, and how deep they may be in each other."""
TEXT = 400_000
"""Characters of one text, which is at most all that a model is given of what a client sends."""

Id = Annotated[str, Field(max_length=200)]
"""An id, or the name of a model, a tool or a conversation."""
CallId = Annotated[str, Field(max_length=10_000)]
"""The id of a call: some gateways keep a signature of the model's thoughts in it."""
Text = Annotated[str, Field(max_length=TEXT)]
ImageUrl = Annotated[str, Field(pattern=IMAGE_URL, max_length=100_000_000)]
"""The server of the model fetches it, so nothing but pictures and https is passed on."""
StopText = Annotated[str, Field(min_length=1, max_length=256)]
Free = Annotated[dict[str, Any], Field(max_length=1_000)]
"""An object of the client's own."""
MOST_STOPS, MOST_PARTS, MOST_TOOLS, MOST_MESSAGES = 4, 1_000, 128, 10_000

_STEPS = {ord(bracket): step for brackets, step in (("[{", 1), ("]}", -1)) for bracket in brackets}
_NO_BRACKET = bytes(set(range(256)) - _STEPS.keys())


def check_json(body: bytes) -> None:
    """Raise ApiError for JSON with more values than can be read in a moment, or nested too deep. What is no
    JSON may pass."""
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
