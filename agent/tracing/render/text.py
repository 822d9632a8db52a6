"""What was recorded, put so that it harms no terminal and no page: anybody may have said it."""

import json
import re
import unicodedata
from datetime import datetime
from typing import Any

from agent.tracing.trace import Usage
from memory.audience import Place

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # what drives a terminal
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # what turns text around or hides
    "\ud800-\udfff"  # halves of characters, which nothing can write
    "\U000e0000-\U000e007f]"
)
WIDEST = 400
"""Characters of a text that a line is made from."""


def harmless(text: str) -> str:
    """The same text, with what would do something instead of being read written out: ``\\x1b``, ``\\u202e``.
    Lines stay lines."""
    return _HARMFUL.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def one_line(text: Any, longest: int = WIDEST) -> str:
    """A text of any length as one harmless line of so many columns at most."""
    beginning = str(text)[: 4 * longest]
    return clipped(harmless(" ".join(beginning.split())), longest)


def clipped(text: str, columns: int) -> str:
    """What fits; a character of Chinese or a picture takes two columns."""
    if len(text) * 2 <= columns or width(text) <= columns:
        return text
    taken = 1  # the dots
    for at, character in enumerate(text):
        taken += _columns(character)
        if taken > columns:
            return f"{text[:at].rstrip()}…"
    return text


def width(text: str) -> int:
    """In columns of a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def quoted(text: Any, longest: int = WIDEST) -> str:
    return f'"{one_line(text, longest)}"'


def duration(seconds: float | None) -> str:
    """``41 ms``, ``1.9 s``, ``3 min 20 s``; nothing where it has not ended."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def tokens(usage: Usage) -> str:
    """``240→18``; nothing where the server did not count."""
    return f"{usage.input}→{usage.output}" if usage.input or usage.output else ""


def when(moment: datetime) -> str:
    """By the clock of this place."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def where(place_key: str) -> str:
    return one_line(str(Place.of_key(place_key)), 60)


def count(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that can be printed anywhere: what harms is escaped, and reads as it was."""
    written = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    return _HARMFUL.sub(_escaped, written)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return sorted(value) if isinstance(value, frozenset | set) else str(value)
