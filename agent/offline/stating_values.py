"""The value of a statement as it is noted: a place, a job, a name, a zone, goals; none where in doubt."""

import re
from datetime import datetime
from functools import cache
from zoneinfo import available_timezones

from agent.offline import stating_en as en
from agent.offline import stating_fr as fr
from agent.offline import stating_he as he
from agent.offline.due import dated
from agent.offline.languages import english_name
from agent.offline.words import bag, key_words

LONGEST_VALUE = 120
LISTED = frozenset({"goals"})
"""Keys that hold several values."""

_JOBS = bag(" ".join((en.JOBS, fr.JOBS, he.JOBS)))
_NOT_OF_A_JOB = bag(" ".join((en.NOT_OF_A_JOB, fr.NOT_OF_A_JOB, he.NOT_OF_A_JOB)))
_NO_PLACE = bag(" ".join((en.NO_PLACE, fr.NO_PLACE, he.NO_PLACE)))
_NO_NAME = bag(" ".join((en.NO_NAME, fr.NO_NAME, he.NO_NAME)))
_PARTICLES = bag(
    "de da del der den di du des la le les van von zu ben bin bat al el of the sur and y upon d'"
)
_AFTER_A_PLACE = re.compile(
    r"\s+(?:with|since|near|together|avec|depuis|près|עם|מאז|ליד|כבר)\b.*$|"
    r"\s+for (?:\d|a |two|three|many|some).*$|"
    r"\s+(?:(?:last|this) (?:week|month|year)|yesterday|today|recently|hier|aujourd'hui)$",
    re.I,
)
_AFTER_A_JOB = re.compile(
    r"\s*,.*$|\s+(?:in|at|for|from|with|who|working|by|near|since|"
    r"à|au|aux|en|dans|chez|pour|depuis|qui|avec)\b.*$|"
    r"\s+de (?:métier|profession)$|\s+(?:במקצועי?|בבית|בחברת|של)\b.*$|\s+ב\w+$",
    re.I,
)
_OFFSET = re.compile(r"(?:utc|gmt)\s?([+-])\s?0?(\d{1,2})(?::?00)?", re.I)


def read_value(key: str, found: re.Match[str], text: str, said_at: datetime) -> tuple[str, ...]:
    """What the groups of a pattern hold; `text` is the whole message, which shows how they capitalise."""
    group, value = next((name, value) for name, value in found.groupdict().items() if value is not None)
    value = " ".join(value.split()).strip(" .,;:!-–")
    match key:
        case "language" | "native_language":
            one = english_name(value)
        case "name":
            one = _name(value, plain=text.islower())
        case "location":
            one = _place(value, plain=text.islower())
        case "role":
            one = _job(value, named=group == "w")
        case "timezone":
            one = _zone(value)
        case _:
            return _goals(value, said_at, several=group == "list")
    return (one,) if one and len(one) <= LONGEST_VALUE else ()


def _written(value: str, *, plain: bool, most: int) -> str | None:
    """As names are written; in a message without capitals ("plain") they are put in."""
    parts = value.split()
    if not parts or len(parts) > most or not all(re.fullmatch(r"[^\W\d_][\w'’.,-]*", part) for part in parts):
        return None
    if plain and value.islower():
        return value.title()
    shown = all(not part[0].islower() or part.casefold() in _PARTICLES for part in parts)
    return value if shown and not parts[-1][0].islower() else None


def _name(value: str, *, plain: bool) -> str | None:
    parts = value.split()
    if not parts or any(part.casefold().strip(",") in _NO_NAME for part in parts) or "," in value:
        return None
    if len(parts) == 1 and value.islower():
        return _written(value, plain=True, most=1)
    return _written(value, plain=plain, most=2 if plain or value[0] > "\u02ff" else 4)


def _place(value: str, *, plain: bool) -> str | None:
    value = _AFTER_A_PLACE.sub("", value)
    value = re.sub(r"^(?:à|au|aux|en|dans|sur)\s+(?:(?:le|la|les)\s+(?=[A-ZÀ-Ý])|l'(?=[A-ZÀ-Ý]))?", "", value)
    first, _, rest = value.partition(" ")
    article = first.casefold() == "the" and rest[:1].isupper()
    if not article and (first.casefold().strip(",") in _NO_PLACE or first.casefold().startswith("l'")):
        return None
    return _written(rest if article else value, plain=plain, most=3 if plain or value[:1] > "\u02ff" else 6)


def _job(value: str, *, named: bool) -> str | None:
    """`named`: it was called their work, so that no list needs to know it."""
    value = _AFTER_A_JOB.sub("", value)
    parts = value.casefold().split()
    if not parts or len(parts) > 4 or not _NOT_OF_A_JOB.isdisjoint(parts):
        return None
    known = parts[-1] in _JOBS or parts[0] in _JOBS or parts[-1].endswith("ologist")
    return value if (known or named) and all(part[0].isalpha() for part in parts) else None


@cache
def _zones() -> dict[str, str]:
    """IANA names by themselves and, where only one has it, by their last part: "paris"."""
    names = sorted(available_timezones() - {"localtime", "Factory"})
    cities: dict[str, list[str]] = {}
    for name in names:
        if "/" in name and not name.startswith("Etc/"):
            cities.setdefault(name.rpartition("/")[2].casefold(), []).append(name)
    alone = {city: found[0] for city, found in cities.items() if len(found) == 1}
    return alone | {name.casefold(): name for name in names}


def _zone(value: str) -> str | None:
    if offset := _OFFSET.fullmatch(value):
        west = "-" if offset[1] == "+" else "+"  # in these names the sign is that of the way to Greenwich
        return _zones().get(f"etc/gmt{west}{int(offset[2])}")
    return _zones().get(value.replace(" ", "_").casefold())


def _goals(value: str, said_at: datetime, *, several: bool) -> tuple[str, ...]:
    """Each without "to"; "by tomorrow" as a date."""
    parts = re.split(r"\s*[,;]\s*(?:(?:and|et) )?|\s+(?:and|et)\s+|\s+ו(?=ל)", value) if several else [value]
    goals = [re.sub(r"^(?:to |de |d')", "", part, flags=re.I).strip() for part in parts]
    goals = [
        _dated(goal, said_at) for goal in goals if key_words(goal) and goal.split()[0] not in ("not", "ne")
    ]
    return tuple(goal for goal in goals if len(goal) <= LONGEST_VALUE)


def _dated(goal: str, said_at: datetime) -> str:
    try:
        return dated(goal, said_at)
    except OverflowError:  # on the last day of time there is no tomorrow
        return goal
