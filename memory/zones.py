"""Times as people give and read them: in their own time zone.

What is kept is aware UTC. A zone of None is the clock of this machine.
"""

import re
import unicodedata
from datetime import UTC, date, datetime, time, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

MORNING = time(9)
"""What a date alone means: a reminder of that day comes in the morning."""
EVENING = time(23, 59)
"""What today's date means once the morning is over."""

YEARS = range(1970, 9000)
"""Others are slips of the pen, and near the ends of the calendar no zone can show them."""

_LONGEST = 80
"""Characters of a time."""
_OFFSET_APART = re.compile(r"\s+(?=(?:[+-]\d\d(?::?\d\d)?|Z)$)", re.IGNORECASE)
_NAMED_ZONE = re.compile(r"(.*\d(?:Z)?)\s*(?:\s|\[)\s*([A-Za-z]\w*(?:[/+-]\w+)*)\]?")


def read_time(text: str, zone: tzinfo | None, now: datetime) -> datetime:
    """A time in ISO 8601, as aware UTC; ValueError, of one line that says what to write, where it is none.

    Without an offset it is meant in `zone`, unless it ends in the name of another (``… 10:00 Europe/Paris``).
    A date alone is nine in the morning, or the end of the day where it is today and nine has passed. An hour
    that the clocks skip is the one after it, an hour that comes twice the first of the two.
    """
    plain = _OFFSET_APART.sub("", unicodedata.normalize("NFKC", text).strip()) if len(text) < _LONGEST else ""
    try:
        if named := _NAMED_ZONE.fullmatch(plain):
            plain, zone = named[1], _zone(named[2])
        moment = _on(plain, zone, now) or datetime.fromisoformat(plain)
        if moment.year in YEARS:
            return _placed(moment, zone).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass  # told below
    examples = "2026-01-10, 2026-01-10T09:30 or 2026-01-10T09:30+02:00"
    raise ValueError(f"{text[:_LONGEST]!r} is no time such as {examples}")


def in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.astimezone(zone)


def _on(text: str, zone: tzinfo | None, now: datetime) -> datetime | None:
    """The time that a date stands for; None where the text is more than a date."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    here = in_zone(now, zone)
    late = day == here.date() and here.time() >= MORNING
    return datetime.combine(day, EVENING if late else MORNING)


def _placed(moment: datetime, zone: tzinfo | None) -> datetime:
    """With a zone: its own, or the one given."""
    if moment.tzinfo is None and zone is not None:
        return moment.replace(tzinfo=zone)
    return moment  # without any, `astimezone` takes the clock of this machine


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    """By its name in the IANA database; ValueError where there is none."""
    try:
        return ZoneInfo(name.upper() if len(name) <= 3 else name)
    except KeyError:
        raise ValueError(name) from None
