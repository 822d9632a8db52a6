"""Parse how long a memory is valid: ``7d``, ``2 weeks``, ``P1DT12H``.

A month is 30 days and a year 365. An unreadable or ambiguous duration (``3m``, ``1,500 h``) means for ever,
so that a typing error never loses a fact.
"""

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pydantic import TypeAdapter, ValidationError

LONGEST = timedelta(days=100 * 365.25)
"""A duration over a hundred years is a typing error."""

_SECONDS = {
    "s sec secs second seconds": 1,
    "min mins minute minutes": 60,
    "h hr hrs hour hours": 3600,
    "d day days": 86_400,
    "w wk wks week weeks": 7 * 86_400,
    "mo mos month months": 30 * 86_400,
    "y yr yrs year years": 365 * 86_400,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names.split()}
_MOST_MONTHS = 60
"""Up to this many ``m`` may be months: "36m", not "90m". After hours they are minutes, after years months."""
_FOREVER = frozenset(("", "null", "none", "never", "forever", "permanent"))

_PART = re.compile(r"(?P<count>\d+(?:[.,]\d+)?|an?\b|one\b)[\s-]*(?P<unit>[^\W\d_]+)", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}[.,]\d{3}(?!\d)")
"""Ambiguous numbers: "1,500" is one and a half to some, fifteen hundred to others."""
_JOIN = re.compile(r"(?:\s|,|&|\+|\band\b)*", re.IGNORECASE)
_ISO = TypeAdapter(timedelta)

_MOST_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Ttl:
    """A parsed duration."""

    duration: timedelta | None
    """Positive and at most `LONGEST`; None is for ever."""
    understood: bool
    """False if the text could not be read, so that the fact is kept for ever."""


_FOR_EVER = Ttl(None, True)
_UNREAD = Ttl(None, False)


def read_ttl(value: object, *, m: Literal["minutes", "unclear"] = "unclear") -> Ttl:
    """Parse a duration. An unclear or negative one becomes for ever, not understood. `m` is the unit of
    ``3m``."""
    if value is None:
        return _FOR_EVER
    if isinstance(value, timedelta):
        return _within_bounds(value.total_seconds())
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return _UNREAD
    written = unicodedata.normalize("NFKC", value).strip().strip(".\"'").strip()
    text = written.casefold()
    if text in _FOREVER:
        return _FOR_EVER
    if _THOUSANDS.search(text):
        return _UNREAD
    spoken = written[len("for ") :].strip() if text.startswith("for ") else written
    return _within_bounds(_iso_seconds(text) or _spoken_seconds(spoken, m))


def describe(duration: timedelta | None) -> str:
    """Format a duration so that `read_ttl` parses it: ``2 weeks``, ``1 day 12 hours``."""
    if duration is None:
        return "for ever"
    left = max(1, round(duration.total_seconds()))
    if left % (7 * 86_400) == 0:
        return _counted(left // (7 * 86_400), "week")
    parts = []
    for unit, seconds in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(_counted(count, unit))
    return " ".join(parts)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _within_bounds(seconds: float) -> Ttl:
    if not 0 <= seconds <= LONGEST.total_seconds():
        return _UNREAD
    duration = timedelta(seconds=seconds)  # less than a microsecond is zero
    return Ttl(duration, True) if duration else _UNREAD


def _iso_seconds(text: str) -> float:
    with suppress(ValidationError):
        return _ISO.validate_python(text.upper().replace(",", ".")).total_seconds() if text[0] == "p" else 0
    return 0


def _spoken_seconds(text: str, m: str) -> float:
    """Return the sum of ``<count> <unit>`` parts; 0 if the text has anything else or is ambiguous."""
    total, position, before = 0.0, 0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return 0
        count, written = _number(part["count"]), part["unit"]
        unit = _UNITS.get(written.casefold()) or _m_seconds(written, count, before, m)
        if unit is None or not count:
            return 0
        total, before = total + count * unit, unit
        joined = _JOIN.match(text, part.end())
        position = joined.end() if joined else part.end()
    return total


def _m_seconds(written: str, count: float, before: int, m: str) -> int | None:
    """Return the seconds of an ``m`` or ``M`` after a part of the unit `before`; None if ambiguous."""
    if written not in ("m", "M"):
        return None
    if before == _UNITS["hour"] or (written == "m" and (m == "minutes" or count > _MOST_MONTHS)):
        return _UNITS["minute"]
    return _UNITS["month"] if written == "M" or before == _UNITS["year"] else None


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if text[0].isdecimal() else 1.0
