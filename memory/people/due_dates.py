"""Parses due dates as people write them: ISO 8601 and plain English, in their own time zone.

All callers parse due dates with `read_due`: the CLI, HTTP, MCP, the `update_task` tool and the offline
stand-in. It parses the whole text or refuses it; it never picks a date out of unknown words. A zone of None
means the zone of this machine.
"""

import re
import unicodedata
from calendar import monthrange
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

MORNING, EVENING = time(9), time(20)
"""A day without a time means the morning: a reminder then comes while there is time to act."""
DAY_END = time(23, 59)
"""The time for a part of the day that has already passed."""
YEARS = range(1970, 9000)
"""Years outside this range are typing errors. Near the ends of the calendar some zones cannot show a time."""
EXAMPLES = (
    '2026-01-10, 2026-01-10T09:30, 2026-01-10T09:30+02:00, "tomorrow at 9", "Friday 17:30", '
    '"10 January 2027" or "in 2 hours"'
)

_LONGEST = 80
_OFFSET_APART = re.compile(r"\s+(?=(?:[+-]\d\d(?::?\d\d)?|Z)$)", re.IGNORECASE)
_NAMED_ZONE = re.compile(r"(.*\d(?:Z)?)\s*(?:\s|\[)\s*([A-Za-z]\w*(?:[/+-]\w+)*)\]?")

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DAY_PARTS = {
    "morning": MORNING,
    "noon": time(12),
    "midday": time(12),
    "lunchtime": time(12),
    "afternoon": time(15),
    "evening": EVENING,
    "night": EVENING,
}


def _names(words: tuple[str, ...]) -> str:
    """A pattern for the words and their usual abbreviations (three letters or more)."""
    return "|".join(
        rf"{word[:3]}(?:{'|'.join(word[3:n] for n in range(len(word), 2, -1))})" for word in words
    )


_MONTH = rf"(?P<month>{_names(_MONTHS)})\.?"
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4}))?"
_PARTS = [
    re.compile(rf"(?:{pattern})(?=$|[\s,])[\s,]*")
    for pattern in (
        r"in\s+(?P<count>\d{1,3}|half\s+an|an?|"
        + "|".join(_NUMBERS[1:])
        + r")\s*(?P<unit>minute|min|hour|hr|h|day|week|month)s?",
        r"(?:the\s+)?(?P<offset>day after tomorrow|tomorrow|today|tonight)"
        r"|this\s+(?P<this>morning|afternoon|evening)",
        rf"(?:on\s+)?(?:(?P<which>next|this)\s+)?(?P<weekday>{_names(_WEEKDAYS)})",
        r"next\s+(?P<next>week|month)",
        rf"(?:on\s+)?(?:the\s+)?{_DAY_OF_MONTH}(?:\s+of)?\s+{_MONTH}{_YEAR}",
        rf"(?:on\s+)?{_MONTH}\s+(?:the\s+)?{_DAY_OF_MONTH}{_YEAR}".replace("?P<", "?P<us_"),
        r"(?:on\s+)?(?P<iso>\d{4}-\d\d-\d\d)",
        r"(?:in\s+the|at)\s+(?P<in_the>morning|afternoon|evening|night)|(?P<part>morning|afternoon|evening|night)",
        r"(?:at\s+)?(?P<named>noon|midday|lunchtime|midnight)",
        r"(?P<at>at\s+|@\s*)?(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\.?)?(?:\s*o['’]clock)?",
    )
]


def read_due(text: str, zone: tzinfo | None, now: datetime) -> datetime | Literal["never"]:
    """The due date as aware UTC, or "never", which removes a due date. Raises ValueError like `read_time`."""
    return "never" if text.strip().lower() == "never" else read_time(text, zone, now)


def read_time(text: str, zone: tzinfo | None, now: datetime) -> datetime:
    """The time as aware UTC. Raises ValueError, one line that lists the accepted forms.

    Without an offset the time is in `zone`, unless the text ends in the name of another zone ("… 10:00
    Europe/Paris"). A date alone means 09:00, or the end of the day if it is today and 09:00 has passed. A
    bare hour from 1 to 6 is in the afternoon: "Friday at 5" is 17:00, "Friday 05:00" is not. An hour that the
    clocks skip becomes the one after it. An hour that occurs twice is the first one.
    """
    if len(text) < _LONGEST:
        plain = unicodedata.normalize("NFKC", text).strip()
        try:
            moment = _iso(plain, zone, now) or _english(plain.casefold().rstrip(".!"), now.astimezone(zone))
            if moment is not None and moment.year in YEARS:
                return (_placed(moment, zone)).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            pass  # no form matches, or the system cannot place the time: the error below lists the forms
    raise ValueError(f"{text[:_LONGEST]!r} is not a time that can be read; write for example {EXAMPLES}")


def _placed(moment: datetime, zone: tzinfo | None) -> datetime:
    """The moment in the zone. With None it stays naive: `astimezone` then uses this machine's zone."""
    return moment.replace(tzinfo=zone) if moment.tzinfo is None and zone is not None else moment


def _iso(text: str, zone: tzinfo | None, now: datetime) -> datetime | None:
    """The time if the text is ISO 8601, optionally followed by the name of a zone; else None."""
    text = _OFFSET_APART.sub("", text)
    with suppress(ValueError):  # it is no date alone
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


def _at_a_good_time(day: date, here: datetime, at: time = MORNING) -> datetime:
    """The day at the given time, or at its end if that time has passed."""
    passed = day == here.date() and here.time() >= at
    return datetime.combine(day, DAY_END if passed else at)


def _english(text: str, here: datetime) -> datetime | None:
    """The time, naive in the zone of `here`; None if any part of the text is not understood."""
    found = _fields(text)
    if found is None:
        return None
    if found.get("unit") in ("minute", "min", "hour", "hr", "h"):
        minutes = _count(found["count"]) * (1 if found["unit"].startswith("min") else 60)
        alone = found.keys() <= {"count", "unit"}
        return (here.astimezone(UTC) + timedelta(minutes=minutes)) if alone else None
    if found.get("count") == "half an" or ("hour" in found and ("named" in found or "this" in found)):
        return None
    day = _day(found, here)
    part = found.get("this") or found.get("in_the") or found.get("part")
    part = "night" if found.get("offset") == "tonight" else part
    if "hour" in found:
        return _hour(found, day, part, here)
    if "named" in found:
        part = found["named"]
    if part == "midnight":
        return datetime.combine((day or here.date()) + timedelta(days=1), time(0))
    if day is None:
        return None if part is None else _at_a_good_time(here.date(), here, _DAY_PARTS[part])
    if "count" in found and part is None:
        return datetime.combine(day, here.time())
    return _at_a_good_time(day, here, _DAY_PARTS[part] if part else MORNING)


def _fields(text: str) -> dict[str, str] | None:
    """The parts of the text, by the names of the groups; None if a part is unknown or occurs twice."""
    found: dict[str, str] = {}
    left = list(_PARTS)
    while text:
        match = next(((pattern, m) for pattern in left if (m := pattern.match(text))), None)
        if match is None:
            return None
        left.remove(match[0])
        found |= {name.removeprefix("us_"): value for name, value in match[1].groupdict().items() if value}
        text = text[match[1].end() :]
    days = [name for name in ("unit", "offset", "this", "weekday", "next", "day", "iso") if name in found]
    parts = [name for name in ("this", "in_the", "part", "named") if name in found]
    return found if found and len(days) < 2 and len(parts) < 2 else None


def _count(word: str) -> float:
    if word.isdigit():
        return int(word)
    return 0.5 if word == "half an" else 1 if word in ("a", "an") else _NUMBERS.index(word)


def _day(found: dict[str, str], here: datetime) -> date | None:
    """The day that the text names; None if it names no day."""
    today = here.date()
    if "count" in found:
        count = int(_count(found["count"]))
        return (
            _months_later(today, count)
            if found["unit"] == "month"
            else (today + timedelta(days=count * (7 if found["unit"] == "week" else 1)))
        )
    if "offset" in found:
        return today + timedelta(days={"tomorrow": 1, "day after tomorrow": 2}.get(found["offset"], 0))
    if "weekday" in found:
        ahead = _number(_WEEKDAYS, found["weekday"]) - today.weekday()
        if found.get("which") == "next":  # the one in the next calendar week
            return today + timedelta(days=ahead + 7)
        return today + timedelta(days=ahead % 7 or (0 if found.get("which") == "this" else 7))
    if "next" in found:
        return today + timedelta(days=7) if found["next"] == "week" else _months_later(today, 1)
    if "iso" in found:
        return date.fromisoformat(found["iso"])
    if "day" in found:
        month, number = _number(_MONTHS, found["month"]) + 1, int(found["day"])
        if "year" in found:
            return date(int(found["year"]), month, number)
        years = (today.year + n for n in range(8))  # the next 29 February is at most eight years away
        days = (date(year, month, number) for year in years if number <= monthrange(year, month)[1])
        return next((day for day in days if day >= today), date.min)
    return today if "this" in found else None


def _number(names: tuple[str, ...], name: str) -> int:
    return next(number for number, full in enumerate(names) if full.startswith(name))


def _months_later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _hour(found: dict[str, str], day: date | None, part: str | None, here: datetime) -> datetime | None:
    """The time with an hour; None if the text has no hour. A number alone is not an hour: it needs a day,
    "at", minutes or am and pm."""
    written, hour, minute = found["hour"], int(found["hour"]), int(found.get("minute", 0))
    half = found.get("half", "").replace(".", "")
    if not (day or half or "at" in found or "minute" in found):
        return None
    if half and not 1 <= hour <= 12:
        return None
    open_ = not half and 1 <= hour <= 12 and not written.startswith("0")
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif open_ and part in ("afternoon", "evening", "night"):
        hour = hour % 12 + (12 if hour != 12 or part == "afternoon" else 24)
    elif open_ and part is None and hour < 7:
        hour += 12
    days, hour = divmod(hour, 24) if hour == 24 else (0, hour)
    moment = datetime.combine((day or here.date()) + timedelta(days=days), time(hour, minute))
    now = here.replace(tzinfo=None)
    if moment <= now and moment.date() == now.date():
        if open_ and part is None and hour < 12 and moment + timedelta(hours=12) > now:
            return moment + timedelta(hours=12)
        if day is None:
            return moment + timedelta(days=1)
    return moment
