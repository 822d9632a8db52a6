"""Makes recorded text, which may contain anything, safe for terminals and pages."""

import json
import re
from datetime import datetime
from typing import Any
from unicodedata import combining, east_asian_width

from agent.types import Usage
from memory.audience import Place

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # change direction, or hide text
    "\ud800-\udfff"  # unpaired surrogates, which cannot be encoded
    "\U000e0000-\U000e007f]"  # tag characters, which are invisible
)
MAX_LINE = 400
"""The most columns of a text on one line."""


def harmless(text: str) -> str:
    """Return the text with harmful characters escaped: ``\\x1b``, ``\\u202e``. Line breaks stay."""
    return _HARMFUL.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: Any, longest: int = MAX_LINE) -> str:
    """Return the text as one harmless line of at most `longest` columns."""
    beginning = str(text)[: 4 * longest]
    return clipped(harmless(" ".join(beginning.split())), longest)


def clipped(text: str, columns: int) -> str:
    """Cut the text to `columns`. Chinese characters and emoji take two columns."""
    if width(text) <= columns:
        return text
    text = text[:columns]
    while width(text) >= columns:
        text = text[:-1]
    return f"{text.rstrip()}…"


def width(text: str) -> int:
    """Return how many terminal columns the text takes."""
    if text.isascii():
        return len(text)
    return sum((2 if east_asian_width(one) in "WF" else 1) for one in text if not combining(one))


def quoted(text: Any, longest: int = MAX_LINE) -> str:
    return f'"{one_line(text, longest)}"'


def duration(seconds: float | None) -> str:
    """Return ``41 ms``, ``1.9 s``, ``3 min 20 s``; empty for None."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def tokens(usage: Usage) -> str:
    """Return ``240→18``; empty if the server did not count tokens."""
    return f"{usage.input}→{usage.output}" if usage.input or usage.output else ""


def money(cost: float | None) -> str:
    """Return ``0.0042`` in the currency of the prices; ``?`` if a price is unknown."""
    return "?" if cost is None else f"{cost:.4f}" if cost < 1 else f"{cost:,.2f}"


def when(moment: datetime) -> str:
    """Return the time in the local time zone."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def where(place_key: str) -> str:
    return one_line(str(Place.of_key(place_key)), 60)


def count(number: int, noun: str, several: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that can be printed anywhere: harmful characters are escaped."""
    return harmless_json(json.dumps(value, ensure_ascii=False, indent=indent, default=_jsonable))


def harmless_json(text: str) -> str:
    """Return the JSON with harmful characters escaped; its values stay the same."""
    return _HARMFUL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not written as JSON")


def as_lines(value: Any) -> list[str]:
    """Return a text as lines; anything else, and text that is JSON, as indented JSON."""
    parsed = parsed_json(value)
    if isinstance(parsed, dict | list) or not isinstance(value, str):
        value = json.dumps(parsed, ensure_ascii=False, indent=2)
    return text_lines(value)


def text_lines(text: str) -> list[str]:
    return harmless(text).expandtabs(4).splitlines() or [""]


def parsed_json(value: Any) -> Any:
    """Parse a JSON text; None if it is not JSON. Other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
