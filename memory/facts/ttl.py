"""Parses how long a memory is valid, as a model or a person wrote it: ``7d``, ``2 weeks``, ``P1DT12H``.

A month is 30 days and a year 365. An unreadable duration means for ever, so that a typing error never loses a
fact.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import timedelta

LONGEST = timedelta(days=100 * 365.25)
"""A duration over a hundred years is a typing error."""

_SECONDS = {
    "s sec secs second seconds seconde secondes שניה שנייה שניות": 1,
    "m min mins minute minutes דקה דקות": 60,
    "h hr hrs hour hours heure heures שעה שעות": 3600,
    "d day days j jour jours journée journées יום ימים": 86_400,
    "w wk wks week weeks sem semaine semaines שבוע שבועות": 7 * 86_400,
    "fortnight fortnights quinzaine": 14 * 86_400,
    "mo mos mon month months mois חודש חודשים": 30 * 86_400,
    "y yr yrs year years an ans année années שנה שנים": 365 * 86_400,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names.split()}

_NUMBERS = {
    "a an one un une אחד אחת": 1,
    "two deux שני שתי": 2, "three trois שלוש שלושה": 3, "four quatre ארבע ארבעה": 4,
    "five cinq חמש חמישה": 5, "six שש שישה": 6, "seven sept שבע שבעה": 7,
    "eight huit שמונה": 8, "nine neuf תשע תשעה": 9, "ten dix עשר עשרה": 10,
}  # fmt: skip
_COUNTS = {name: count for names, count in _NUMBERS.items() for name in names.split()}

# In Hebrew one word means one or two of a unit.
_ALONE = {
    "שעה": timedelta(hours=1), "שעתיים": timedelta(hours=2),
    "יום": timedelta(days=1), "יומיים": timedelta(days=2),
    "שבוע": timedelta(days=7), "שבועיים": timedelta(days=14),
    "חודש": timedelta(days=30), "חודשיים": timedelta(days=60),
    "שנה": timedelta(days=365), "שנתיים": timedelta(days=730),
}  # fmt: skip

_FOREVER = frozenset(
    (
        "null,none,nil,undefined,never,forever,for ever,always,n/a,-,∞,permanent,permanently,indefinite,"
        "indefinitely,infinite,infinity,unlimited,no expiry,no expiration,does not expire,never expires,"
        "lifetime,jamais,toujours,pour toujours,permanente,illimité,aucun,aucune,לתמיד,לעולם,"
    ).split(",")
)

_PREFIX = re.compile(r"^(?:for|in|within|after|about|pendant|durant|pour|dans|environ|למשך|בעוד)\s+")
_PART = re.compile(r"(?P<count>\d+(?:[.,]\d+)?|[^\W\d_]+(?=[\s-]))[\s-]*(?P<unit>[^\W\d_]+)(?:\(s\))?")
_JOIN = re.compile(r"(?:\s|,|&|\+|\band\b|\bet\b|ו(?=[\s\d-]))*")
_ISO = re.compile(
    r"p(?:(\d+(?:[.,]\d+)?)y)?(?:(\d+(?:[.,]\d+)?)m)?(?:(\d+(?:[.,]\d+)?)w)?(?:(\d+(?:[.,]\d+)?)d)?"
    r"(?:t(?:(\d+(?:[.,]\d+)?)h)?(?:(\d+(?:[.,]\d+)?)m)?(?:(\d+(?:[.,]\d+)?)s)?)?"
)
_ISO_SECONDS = (365 * 86_400, 30 * 86_400, 7 * 86_400, 86_400, 3600, 60, 1)

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


def read_ttl(value: object) -> Ttl:
    """Parse a duration. Never raises: without a clear, positive one it is for ever and not understood."""
    if value is None:
        return _FOR_EVER
    if isinstance(value, timedelta):
        return _within_bounds(value.total_seconds())
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        return _UNREAD
    text = unicodedata.normalize("NFKC", value).strip().strip(".\"'").strip().casefold()
    if text in _FOREVER:
        return _FOR_EVER
    text = _PREFIX.sub("", text)
    if text in _ALONE:
        return Ttl(_ALONE[text], True)
    return _within_bounds(_iso_seconds(text) or _spoken_seconds(text))


def describe(duration: timedelta | None) -> str:
    """The duration in words that `read_ttl` reads back, to the second: ``2 weeks``, ``1 day 12 hours``."""
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
    match = _ISO.fullmatch(text)
    if match is None:
        return 0
    return sum(
        _number(count) * unit for count, unit in zip(match.groups(), _ISO_SECONDS, strict=True) if count
    )


def _spoken_seconds(text: str) -> float:
    """The sum of ``<count> <unit>`` parts; 0 if there is anything else."""
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return 0
        count, unit = _number(part["count"]), _UNITS.get(part["unit"])
        if unit is None or not count:
            return 0
        total += count * unit
        joined = _JOIN.match(text, part.end())
        position = joined.end() if joined else part.end()
    return total


def _number(text: str) -> float:
    if text[0].isdecimal():
        return float(text.replace(",", "."))
    return _COUNTS.get(text, 0)
