"""What a server says about a fault, in whichever form its error body has."""

import json
from collections.abc import Mapping
from typing import Any

_MESSAGES = ("message", "msg", "detail", "error_description", "title", "errors", "error")


class ServerError(Exception):
    """An error that came as the body of an answer, or in mid-stream."""

    def __init__(self, body: Any) -> None:
        super().__init__(words_of(body) or "the server reported an error without a reason")
        self.body = body
        self.status = status_of(body)


def words_of(body: Any) -> str:
    """Return the server's message; empty if there is none."""
    if isinstance(body, str):
        return _unpacked(body.strip())
    if isinstance(body, list):
        return "; ".join(filter(None, map(words_of, body[:3])))
    if not isinstance(body, Mapping):
        return ""
    inner = [
        words_of(body[name]) for name in ("error", "response") if isinstance(body.get(name), Mapping | list)
    ]
    words = next(filter(None, [*inner, *(words_of(body.get(name)) for name in _MESSAGES)]), "")
    metadata = body.get("metadata")
    raw = words_of(metadata.get("raw")) if isinstance(metadata, Mapping) else ""  # what stands behind a proxy
    where = body.get("loc")
    named = ".".join(map(str, where)) + ": " if isinstance(where, list) and where else ""
    return named + (f"{words}: {raw}" if raw and raw not in words else words)


def _unpacked(text: str) -> str:
    """Return the message in a text that is JSON itself, as behind a proxy."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return words_of(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text


def status_of(body: Any) -> int | None:
    """Return the HTTP status that an error body names, for servers that send it with 200."""
    if isinstance(body, list):
        return status_of(body[0]) if body else None
    if not isinstance(body, Mapping):
        return None
    for name in ("code", "status", "status_code"):
        if str(body.get(name)).isdecimal() and 400 <= int(body[name]) < 600:
            return int(body[name])
    return next(
        (found for part in body.values() if isinstance(part, Mapping) and (found := status_of(part))), None
    )
