"""The filter of traces, and how its values are parsed from the command line or the page.

Functions raise BadInput.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from agent.errors import BadInput
from agent.tracing.trace import TURN, place_key
from agent.types.arguments import Argument, Instant, Seconds, ShortText, listed, short_text
from agent.types.checks import checks_fields
from memory.audience import Place

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_KINDS = Argument(lambda value: frozenset(map(short_text, listed(value))))


@checks_fields
@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Selects the traces that match every given condition."""

    user: ShortText | None = None
    place: ShortText | None = None
    """The key of a place; places inside it match too. Empty means private."""
    tool: ShortText | None = None
    failed: bool = False
    """Whether to select only turns in which something went wrong. They failed, were killed, malformed or
    retried, or a tool or a background job failed."""
    text: ShortText | None = None
    """A part of any text in the trace, in any letter case."""
    since: Instant | None = None
    slower: Seconds | None = None
    """The minimum duration in seconds."""
    kinds: Annotated[frozenset[str], _KINDS] = frozenset({TURN})
    """Empty selects every kind."""
    message_id: ShortText | None = None
    """The message that the turn answered."""
    row: ShortText | None = None
    """The id of a memory, message, task or passage that the trace shows."""


def read_duration(text: str) -> timedelta | None:
    """Parse ``90s``, ``2h`` or ``1.5d``; None if the text is not a duration."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?) *(ms|s|m|min|h|d|w)", text.strip().lower())
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]]) if found else None


def read_seconds(text: str) -> float:
    """Parse ``2s`` or ``500ms``; a bare number means seconds."""
    found = read_duration(text if text[-1:].isalpha() else f"{text.strip()}s")
    if found is None:
        raise BadInput(f"{text!r} is not a duration such as 2s or 500ms")
    return found.total_seconds()


def read_since(text: str, now: datetime) -> datetime:
    """Parse a duration before `now` or an ISO 8601 time; a time without a zone is local."""
    ago = read_duration(text)
    try:
        return now - ago if ago is not None else datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"{text!r} is not a time such as 2h, 1d, 2w, 2026-01-10 or 2026-01-10T09:30"
        ) from error


def read_place(text: str) -> str:
    """Return the key under which traces store the place: empty in private."""
    return place_key(Place.parse(text))
