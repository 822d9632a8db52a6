"""Parses what people type to filter traces, at the command line and on the page. Every function raises
BadInput."""

import re
from datetime import datetime, timedelta

from agent.errors import BadInput
from memory.audience import Place

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def read_duration(text: str) -> timedelta | None:
    """Parse ``90s``, ``2h`` or ``1.5d``; None if the text is not a duration."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) *(ms|s|m|min|h|d|w)", text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] if found else None


def read_seconds(text: str) -> float:
    """Parse ``2s`` or ``500ms``; a bare number means seconds."""
    found = read_duration(text)
    if found is None:
        found = read_duration(f"{text.strip()}s")
    if found is None:
        raise BadInput(f"{text!r} is no length of time such as 2s or 500ms")
    return found.total_seconds()


def read_since(text: str, now: datetime) -> datetime:
    """Parse a duration before `now` or an ISO 8601 time; a time without a zone is local."""
    ago = read_duration(text)
    try:
        return now - ago if ago is not None else datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{text!r} is no time such as 2h, 1d, 2w, 2026-01-10 or 2026-01-10T09:30") from error


def read_place(text: str) -> str:
    """Return the key under which traces store the place: empty in private."""
    place = Place.parse(text)
    return "" if place.private else place.key
