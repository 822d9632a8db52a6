"""Parse due dates as people write them: ISO 8601 and plain English, in their own time zone.

The CLI, HTTP, MCP and the `update_task` tool use `read_due`. It parses the whole text or refuses it. A zone
of None means this machine's.
"""

import re
import unicodedata
from calendar import day_abbr, day_name, month_abbr, month_name, monthrange
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from memory.text.ttl import read_ttl

MORNING = time(9)
"""A day without a time means the morning: a reminder then comes while there is time to act."""
DAY_END = time(23, 59)
"""The time of today if the morning has already passed."""
YEARS = range(1970, 9000)
"""Years outside this range are typing errors. Near the ends of the calendar some zones cannot show a time."""
EXAMPLES = (
    '2026-01-10, 2026-01-10T09:30, 2026-01-10T09:30+02:00, "tomorrow at 9", "Friday 17:30", '
    '"10 January 2027" or "in 2 hours"'
)

_LONGEST = 80
_OFFSET_APART = re.compile(r"\s+(?=(?:[+-]\d\d(?::?\d\d)?|Z)$)", re.IGNORECASE)
_NAMED_ZONE = re.compile(r"(.*\d(?:Z)?)\s*(?:\s|\[)\s*([A-Za-z]\w*(?:[/+-]\w+)*)\]?")

_MONTHS = {name.lower(): at for names in (month_name, month_abbr) for at, name in enumerate(names) if name}
_WEEKDAYS = {name.lower(): at for names in (day_name, day_abbr) for at, name in enumerate(names)}
_DAY = timedelta(days=1)


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_WHEN = re.compile(
    rf"(?:(?:on )?(?:(?P<near>today|tomorrow)|(?P<weekday>{_any(_WEEKDAYS)})|(?P<iso>\d{{4}}-\d\d-\d\d)"
    rf"|(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?P<month>{_any(_MONTHS)})"
    rf"|(?P<month_first>{_any(_MONTHS)}) (?P<then_day>\d{{1,2}})(?:st|nd|rd|th)?)(?:,? (?P<year>\d{{4}}))?)"
    r"(?:,? |$))?"
    r"(?:(?P<at>at |@ ?)?(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d))? ?(?P<half>[ap]\.?m\.?)?)?"
)


def read_due(text: str, zone: tzinfo | None, now: datetime) -> datetime | Literal["never"]:
    """Return the due date as aware UTC, or "never", which removes it. Raises ValueError like `read_time`."""
    return "never" if text.strip().lower() == "never" else read_time(text, zone, now)


def read_time(text: str, zone: tzinfo | None, now: datetime) -> datetime:
    """Return the time as aware UTC. Raises ValueError, one line that lists the accepted forms.

    Without an offset, or the name of a zone at its end ("… 10:00 Europe/Paris"), it is in `zone`. A date
    alone means 09:00, or the end of today once 09:00 has passed. A bare hour from 1 to 6 is in the afternoon.
    An hour that the clocks skip becomes the one after it, one that occurs twice is the first.
    """
    if len(text) < _LONGEST:
        plain = unicodedata.normalize("NFKC", text).strip()
        try:
            here, spoken = now.astimezone(zone), " ".join(plain.rstrip(".!").split())
            moment = _iso(plain, zone, now) or _from_now(spoken, here) or _english(spoken.casefold(), here)
            if moment is not None and moment.year in YEARS:
                return (_placed(moment, zone)).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            pass  # no form matches, or the system cannot place the time: the error below lists the forms
    raise ValueError(f"{text[:_LONGEST]!r} is not a time that can be read; write for example {EXAMPLES}")


def _placed(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return the moment in the zone. With None it stays naive: `astimezone` then uses this machine's zone."""
    return moment.replace(tzinfo=zone) if moment.tzinfo is None and zone is not None else moment


def _iso(text: str, zone: tzinfo | None, now: datetime) -> datetime | None:
    """Return the time if the text is ISO 8601, optionally followed by the name of a zone; else None."""
    text = _OFFSET_APART.sub("", text)
    with suppress(ValueError):  # the text is more than a date
        return _at_a_good_time(date.fromisoformat(text), now.astimezone(zone))
    named = _NAMED_ZONE.fullmatch(text)
    try:
        moment = datetime.fromisoformat(named[1] if named else text)
        return _placed(moment, _zone(named[2])) if named else moment
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name.upper() if len(name) <= 3 else name)
    except KeyError:
        raise ValueError(name) from None


def _at_a_good_time(day: date, here: datetime) -> datetime:
    """Return the morning of the day, or its end if that has passed."""
    passed = day == here.date() and here.time() >= MORNING
    return datetime.combine(day, DAY_END if passed else MORNING)


def _from_now(text: str, here: datetime) -> datetime | None:
    """Return the time of a text such as "in 2 hours"; for whole days naive, in the zone of `here`."""
    later = read_ttl(text[len("in ") :], m="minutes").duration if text.casefold().startswith("in ") else None
    if later is None:
        return None
    return here.astimezone(UTC) + later if later % _DAY else here.replace(tzinfo=None) + later


def _english(text: str, here: datetime) -> datetime | None:
    """Return the time, naive in the zone of `here`; None if any part of the text is not understood."""
    found = _WHEN.fullmatch(text) if text else None
    if found is None:
        return None
    day = _day(found, here.date())
    if found["hour"]:
        return _hour(found, day, here)
    return None if day is None else _at_a_good_time(day, here)


def _day(found: re.Match[str], today: date) -> date | None:
    """Return the day that the text names; None if it names no day."""
    if found["near"]:
        return today + timedelta(days=found["near"] == "tomorrow")
    if found["weekday"]:
        return today + timedelta(days=(_WEEKDAYS[found["weekday"]] - today.weekday()) % 7 or 7)
    if found["iso"]:
        return date.fromisoformat(found["iso"])
    month = _MONTHS.get(found["month"] or found["month_first"] or "")
    if month is None:
        return None
    number = int(found["day"] or found["then_day"])
    if found["year"]:
        return date(int(found["year"]), month, number)
    years = (today.year + n for n in range(8))  # the next 29 February is at most eight years away
    days = (date(year, month, number) for year in years if number <= monthrange(year, month)[1])
    return next((day for day in days if day >= today), date.min)


def _hour(found: re.Match[str], day: date | None, here: datetime) -> datetime | None:
    """Return the time with an hour. A number alone is none: it needs a day, "at", minutes or am and pm."""
    written, hour, minute = found["hour"], int(found["hour"]), int(found["minute"] or 0)
    half = (found["half"] or "").replace(".", "")
    if not (day or half or found["at"] or found["minute"]) or (half and not 1 <= hour <= 12):
        return None
    open_ = not half and 1 <= hour <= 12 and not written.startswith("0")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif open_ and hour < 7:
        hour += 12
    moment = datetime.combine(day or here.date(), time(hour, minute))
    now = here.replace(tzinfo=None)
    if moment <= now and moment.date() == now.date():
        if open_ and hour < 12 and moment + timedelta(hours=12) > now:
            return moment + timedelta(hours=12)
        if day is None:
            return moment + timedelta(days=1)
    return moment
