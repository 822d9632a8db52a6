"""Numbers, dates and times of day, each with one key however it is written."""

import re

from memory.compare.chunks import Chunk
from memory.compare.vocabulary import Vocabulary

_NUMBER = re.compile(r"([+-]?\d+(?:[.,:/-]\d+)*)-?([^\W\d_]+\.?[^\W\d_]*|[%€$£°]+)?$")
_ORDINAL_ENDINGS = {"st", "nd", "rd", "th", "er", "ère", "e", "ème", "re"}
_HALVES = {"am": 0, "a.m": 0, "pm": 12, "p.m": 12}
_HOURS = {"h", "heure", "heures"}
_TENS = {"20", "30", "40", "50", "60", "70", "80", "90"}
_DAY_PARTS = {
    "morning": 0, "evening": 12, "afternoon": 12, "night": 12,
    "matin": 0, "soir": 12, "après-midi": 12, "בבוקר": 0, "בערב": 12, "בלילה": 12,
}  # fmt: skip
_ALSO_WORDS = {"may", "march", "mar", "sun", "sat", "mon", "wed", "dec", "jan"}


def value_at(chunks: list[Chunk], place: int, words: Vocabulary) -> tuple[str, int] | None:
    """The key of the value that begins at `place`, and how many words it takes."""
    return _date_at(chunks, place, words) or _number_at(chunks, place, words)


def _number_at(chunks: list[Chunk], place: int, words: Vocabulary) -> tuple[str, int] | None:
    """A number or time of day with all the chunks it takes."""
    value, unit = _value(chunks[place].low, words)
    if value is None:
        return None
    length = 1
    if not unit and (ahead := _ahead(chunks, place)) in {*_HALVES, *_HOURS}:
        unit, length = "h" if ahead in _HOURS else ahead, 2
    if unit in ("", "h") and (part := _day_part(chunks, place + length - 1)):
        unit = "pm" if _DAY_PARTS[chunks[place + length - 1 + part].low] else "am"
        length += part
    minutes = unit[1:] if unit[:1] == "h" and unit[1:].isdecimal() else ""
    if unit == "h" and _ahead(chunks, place + length - 1).isdecimal():
        minutes, length = _ahead(chunks, place + length - 1), length + 1
    if minutes or unit in ("h", *_HALVES) or (not unit and _clock(value)):
        time = _time(value, unit, minutes)
        value, unit = (time, "") if time else (value + minutes, unit)
    return value + unit, length


def _value(low: str, words: Vocabulary) -> tuple[str | None, str]:
    """The number that a word is, and the unit written onto it."""
    if low in words.numbers:
        return words.numbers[low], ""
    if low[:1] == "ב" and low[1:] in words.numbers:
        return words.numbers[low[1:]], ""
    tens, _, ones = low.partition("-")
    if ones in words.numbers and words.numbers.get(tens, "") in _TENS:
        return str(int(words.numbers[tens]) + int(words.numbers[ones].removeprefix("ord"))), ""
    if not any(letter.isdecimal() for letter in low):
        return None, ""
    found = _NUMBER.match(low)
    if not found:
        clock = re.fullmatch(r"(\d{1,2})(h\d\d)", low)
        return (clock[1], clock[2]) if clock else (low, "")
    number, unit = found[1], found[2] or ""
    if re.fullmatch(r"\d{1,3}(,\d{3})+", number):
        number = number.replace(",", "")
    number = re.sub(r"^(\d+),(\d+)$", r"\1.\2", number)
    return ("ord" + number, "") if unit in _ORDINAL_ENDINGS else (number, unit)


def _clock(value: str) -> bool:
    return re.fullmatch(r"\d{1,2}:\d\d", value) is not None


def _time(value: str, unit: str, minutes: str) -> str | None:
    hour, _, after = value.partition(":")
    if not hour.isdecimal():
        return None
    hours = int(hour) % 12 + _HALVES[unit] if unit in _HALVES else int(hour)
    return f"time{hours}:{after or minutes or '00'}"


def _ahead(chunks: list[Chunk], place: int) -> str:
    return chunks[place + 1].low if place + 1 < len(chunks) else ""


def _day_part(chunks: list[Chunk], place: int) -> int:
    """How far ahead *in the morning* ends, right after a number; 0 where it does not stand there."""
    for ahead, chunk in enumerate(chunks[place + 1 : place + 4], 1):
        if chunk.low in _DAY_PARTS:
            return ahead
        if chunk.low not in {"in", "the", "at", "du", "de", "l'", "o'clock"}:
            return 0
    return 0


def _date_at(chunks: list[Chunk], place: int, words: Vocabulary) -> tuple[str, int] | None:
    """``14 March``, ``March 14th``, ``the 14th of March``, a month or a weekday alone."""
    low, ahead = chunks[place].low, _ahead(chunks, place)
    skip = 2 if ahead == "of" else 1
    after = chunks[place + skip].low if place + skip < len(chunks) else ""
    if (day := _day(low, words)) and (month := _month(after, words)):
        return f"date{month}-{day}", skip + 1
    if month := _month(low, words):
        if (day := _day(ahead, words)) and not chunks[place + 1].boundary:
            return f"date{month}-{day}", 2
        if low not in _ALSO_WORDS or (chunks[place].capital and place):
            return f"month{month}", 1
    weekday = words.weekdays.get(low) or words.weekdays.get(low.removesuffix("s"))
    if weekday and (low not in _ALSO_WORDS or chunks[place].capital):
        return weekday, 1
    return None


def _day(low: str, words: Vocabulary) -> str:
    value, unit = _value(low, words)
    number = (value or "").removeprefix("ord").lstrip("0")
    return number if not unit and number.isdecimal() and int(number) <= 31 else ""


def _month(low: str, words: Vocabulary) -> str:
    """Its place in the year. In Hebrew a preposition is written onto it."""
    found = words.months.get(low) or (words.months.get(low[1:]) if low[:1] in {"ב", "ל", "מ"} else None)
    return (found or "").removeprefix("month")
