"""When something falls due: "tomorrow at 5pm", "dans deux jours", "מחר", seen from a given moment.

Without a time of day, a day means nine in the morning, and an evening or night eight, in the time zone of the
given moment.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from agent.offline.words import words

MORNING, EVENING = 9, 20

_DAYS = {
    "today aujourd'hui היום": 0,
    "tonight this evening ce soir הערב": 0,
    "tomorrow demain מחר": 1,
}
_OFFSETS = {word: days for group, days in _DAYS.items() for word in words(group) if len(word) > 2}
_EVENINGS = re.compile(r"\b(?:tonight|evening|soir|הערב|בערב)\b", re.I)
_WEEKDAYS = ("monday lundi", "tuesday mardi", "wednesday mercredi", "thursday jeudi", "friday vendredi",
             "saturday samedi שבת", "sunday dimanche")  # fmt: skip
_WEEKDAY_OF = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_UNITS = {
    "minute": "minutes", "minutes": "minutes", "דקות": "minutes", "hour": "hours", "hours": "hours",
    "heure": "hours", "heures": "hours", "שעות": "hours", "day": "days", "days": "days", "jour": "days",
    "jours": "days", "ימים": "days", "week": "weeks", "weeks": "weeks", "semaine": "weeks",
    "semaines": "weeks", "שבועות": "weeks",
}  # fmt: skip
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "une": 1, "un": 1, "deux": 2, "trois": 3}
_IN = re.compile(r"\b(?:in|dans|בעוד)\s+(\d{1,3}|[a-z]+)\s+(\w+)", re.I)
_AT = re.compile(
    r"(?:\b(?:at|à|by)\s+|ב-?)(\d{1,2})(?:(?::|h)(\d{2})|h)?\s*(am|pm|a\.m|p\.m)?\b|\b(\d{1,2})\s*(am|"
    r"pm)\b",
    re.I,
)
_NOW = re.compile(
    r"^[^\w\n]*now\s*:.*?(?P<at>\d{1,2} \w+ \d{4}, \d{2}:\d{2})"
    r"(?:\s*\((?:(?P<zone>[\w+/-]+), ?)?UTC(?:(?P<sign>[+-])(?P<hours>\d{2}):(?P<minutes>\d{2}))?\))?",
    re.IGNORECASE | re.MULTILINE,
)


def now_in(instructions: str) -> datetime | None:
    """The moment that the instructions name, in the zone they name: "Now: Saturday 21 November 2026, 10:30
    (Europe/Paris, UTC+01:00)"; UTC where they name none."""
    found = _NOW.search(instructions)
    try:
        return (
            datetime.strptime(found["at"], "%d %B %Y, %H:%M").replace(tzinfo=_zone(found)) if found else None
        )
    except ValueError:
        return None


def _zone(found: re.Match[str]) -> tzinfo:
    """The zone, which knows of summer time; where it is not known, the offset of that moment."""
    if found["zone"]:
        try:
            return ZoneInfo(found["zone"])
        except (KeyError, OSError, ValueError):
            pass
    if not found["sign"]:
        return UTC
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
    return timezone(-offset if found["sign"] == "-" else offset)


def due(text: str, now: datetime | None) -> datetime | None:
    """When the text says, None where it does not say or where the moment is unknown."""
    if now is None:
        return None
    if (found := _IN.search(text)) and (unit := _UNITS.get(found[2].lower())):
        count = int(found[1]) if found[1].isdigit() else _NUMBERS.get(found[1].lower(), 0)
        return _later(now, unit, count) if count else None
    days = _days_ahead(text, now)
    hour = _AT.search(text)
    if days is None and not hour:
        return None
    day = (now + timedelta(days=days or 0)).replace(second=0, microsecond=0)
    when = day.replace(hour=EVENING if _EVENINGS.search(text) else MORNING, minute=0)
    if hour:
        at, minute = _time(hour)
        when = day.replace(hour=at, minute=minute)
    return when + timedelta(days=1) if days is None and when <= now else when


def _later(now: datetime, unit: str, count: int) -> datetime:
    """Days keep the time on the clock, hours are as long as they are."""
    ahead = timedelta(**{unit: count})
    return now + ahead if unit in ("days", "weeks") else (now.astimezone(UTC) + ahead).astimezone(now.tzinfo)


def _days_ahead(text: str, now: datetime) -> int | None:
    for word in words(text):
        if word in _OFFSETS:
            return _OFFSETS[word]
        if word in _WEEKDAY_OF:
            return (_WEEKDAY_OF[word] - now.weekday()) % 7 or 7
    return None


def _time(found: re.Match[str]) -> tuple[int, int]:
    hour, half = int(found[1] or found[4]), (found[3] or found[5] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return hour % 24, int(found[2] or 0) % 60


def dated(text: str, now: datetime | None) -> str:
    """With "tomorrow" and "yesterday" as dates, which still say the same when they are read later."""
    if now is None:
        return text
    for days, sign, form in (
        (1, r"\btomorrow\b(?!')", "on {}"),
        (-1, r"\byesterday\b(?!')", "on {}"),
        (1, r"\bdemain\b", "le {}"),
        (-1, r"\bhier\b", "le {}"),
        (1, r"\bמחר\b", "ב-{}"),
        (-1, r"\bאתמול\b", "ב-{}"),
    ):
        text = re.sub(sign, form.format((now + timedelta(days=days)).date().isoformat()), text, flags=re.I)
    return text
