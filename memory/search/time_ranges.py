"""Parses the time that a question names: "yesterday", "on 8 May 2023", "il y a deux jours", "בשבוע שעבר".

English, French and Hebrew, by small tables; parsing a question takes some tens of microseconds. Only times in
the past are parsed, since no memory lies in the future.
"""

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from memory.text.names import fold

Span = tuple[datetime, datetime]
"""The first moment, and the first one after the span; both aware."""

_MONTHS = (
    "january jan janvier janv ינואר",
    "february feb fevrier fevr פברואר",
    "march mar mars מרץ מרס",
    "april apr avril avr אפריל",
    "may mai מאי",
    "june jun juin יוני",
    "july jul juillet juil יולי",
    "august aug aout אוגוסט",
    "september sept sep septembre ספטמבר",
    "october oct octobre אוקטובר",
    "november nov novembre נובמבר",
    "december dec decembre דצמבר",
)
_WEEKDAYS = (
    "monday lundi שני",
    "tuesday mardi שלישי",
    "wednesday mercredi רביעי",
    "thursday jeudi חמישי",
    "friday vendredi שישי",
    "saturday samedi שבת",
    "sunday dimanche ראשון",
)
_NUMBERS = (
    "a an one un une",
    "two couple deux שני שתי",
    "three trois שלושה שלוש",
    "four quatre ארבעה ארבע",
    "five cinq חמישה חמש",
    "six שישה שש",
    "seven sept שבעה שבע",
    "eight huit שמונה",
    "nine neuf תשעה תשע",
    "ten dix עשרה עשר",
)
_UNITS = (
    "day days jour jours יום ימים הימים",
    "week weeks semaine semaines שבוע שבועות השבועות",
    "month months mois חודש חודשים החודשים",
    "year years an ans annee annees שנה שנים השנים",
)
_PAIRS = ("יומיים", "שבועיים", "חודשיים", "שנתיים")  # two days, weeks, months, years
_DAYS_BACK = (
    ("today tonight aujourd'hui aujourd’hui היום הבוקר הערב", 0),
    ("yesterday hier אתמול אמש", 1),
    ("day_before_yesterday avant-hier שלשום", 2),
)
_DAYS = (1, 7, 30, 365)
"""Days in each of `_UNITS`, for "the last three months"."""
_SINCE = re.compile(r"\b(?:since|depuis|מאז)\b")
_SINCE_REACH = len("depuis le ")


@lru_cache(maxsize=64)  # a search asks twice
def time_span(question: str, now: datetime) -> Span | None:
    """The time that the question names, in the time zone of `now` (aware); None if it names no time.

    A month or weekday without a year is the most recent one that has begun.
    """
    text = fold(question).replace("day before yesterday", "day_before_yesterday")
    for pattern, read in _readers():
        for match in pattern.finditer(text):
            try:
                start, end = read(match, now)
            except (ValueError, OverflowError):  # no such date: 30 February, 9999 years ago
                continue
            since = _SINCE.search(text[max(0, match.start() - _SINCE_REACH) : match.end()])
            return (start, max(end, now)) if since else (start, end)
    return None


def _index(table: Iterable[str]) -> dict[str, int]:
    return {word: at for at, words in enumerate(table) for word in words.split()}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH, _WEEKDAY, _UNIT, _BACK = map(_index, (_MONTHS, _WEEKDAYS, _UNITS, (w for w, _ in _DAYS_BACK)))
_NUMBER = {word: at + 1 for word, at in _index(_NUMBERS).items()}


def _day(year: int, month: int, day: int, now: datetime) -> Span:
    start = datetime(year, month, day, tzinfo=now.tzinfo)
    return start, start + timedelta(days=1)


def _month(year: int, month: int, now: datetime) -> Span:
    """The month counted from January of `year`; 0 is the December before."""
    years, at = divmod(month - 1, 12)
    start = datetime(year + years, at + 1, 1, tzinfo=now.tzinfo)
    return start, datetime(start.year + at // 11, (at + 1) % 12 + 1, 1, tzinfo=now.tzinfo)


def _year(year: int, now: datetime) -> Span:
    return datetime(year, 1, 1, tzinfo=now.tzinfo), datetime(year + 1, 1, 1, tzinfo=now.tzinfo)


def _back(days: int, now: datetime) -> Span:
    there = now - timedelta(days=days)
    return _day(there.year, there.month, there.day, now)


def _named_day(m: re.Match[str], now: datetime) -> Span:
    month, day = _MONTH[m["month"]] + 1, int(m["day"])
    if m["year"]:
        return _day(int(m["year"]), month, day, now)
    this = _day(now.year, month, day, now)
    return this if this[0] <= now else _day(now.year - 1, month, day, now)


def _figures(m: re.Match[str], now: datetime) -> Span:
    """The day of ``2023-05-08`` or ``8/5/2023``. The day precedes the month, unless that is impossible."""
    if m["iso"]:
        return _day(int(m["iso"]), int(m["m"]), int(m["d"]), now)
    day, month = int(m["first"]), int(m["second"])
    day, month = (month, day) if month > 12 else (day, month)
    return _day(int(m["year"]), month, day, now)


def _named_month(m: re.Match[str], now: datetime) -> Span:
    month = _MONTH[m["month"]] + 1
    if m["year"]:
        return _month(int(m["year"]), month, now)
    return _month(now.year if month <= now.month else now.year - 1, month, now)


def _a_year(m: re.Match[str], now: datetime) -> Span:
    return _year(int(m["year"]), now)


def _a_day(m: re.Match[str], now: datetime) -> Span:
    return _back(_BACK[m["back"]], now)


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBER[text]


def _ago(m: re.Match[str], now: datetime) -> Span:
    """The time around "three weeks ago". Half a unit on either side; years are calendar years."""
    groups = m.groupdict()
    pair = groups.get("pair")
    unit = _PAIRS.index(pair) if pair else _UNIT[m["unit"]]
    count = 2 if pair else _count(groups.get("count") or "1")
    if unit == 3:
        return _year(now.year - count, now)
    start, end = _back(count * _DAYS[unit], now)
    slack = timedelta(days=_DAYS[unit] // 2)
    return start - slack, end + slack


def _lately(m: re.Match[str], now: datetime) -> Span:
    return now - timedelta(days=_count(m["count"]) * _DAYS[_UNIT[m["unit"]]]), now


def _calendar(m: re.Match[str], now: datetime) -> Span:
    """This or the last week (from Monday), month or year."""
    back = 1 if m["last"] else 0
    unit = _UNIT[m["unit"]]
    if unit == 3:
        return _year(now.year - back, now)
    if unit == 2:
        return _month(now.year, now.month - back, now)
    monday = _back(now.weekday() + 7 * back, now)[0]
    return monday, monday + timedelta(days=7)


def _a_weekday(m: re.Match[str], now: datetime) -> Span:
    """The most recent such weekday before today."""
    return _back((now.weekday() - _WEEKDAY[m["weekday"]] - 1) % 7 + 1, now)


Reader = Callable[[re.Match[str], datetime], Span]


@lru_cache(maxsize=1)
def _readers() -> tuple[tuple[re.Pattern[str], Reader], ...]:
    """The patterns with their readers, the most specific first."""
    month, weekday = rf"(?P<month>{_any(_MONTH)})\b\.?", rf"(?P<weekday>{_any(_WEEKDAY)})\b"
    day, year = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er)?", r"(?P<year>(?:19|20)\d\d)\b"
    number, unit = rf"(?P<count>\d{{1,3}}|{_any(_NUMBER)})", rf"(?P<unit>{_any(_UNIT)})\b"
    wide = rf"(?P<unit>{_any(word for word in _UNIT if _UNIT[word])})\b"
    prefix = "[בלמהוש]?-?"  # in, to, from, the, and, that: prefixes of the next word
    forms: tuple[tuple[str, Reader], ...] = (
        (
            r"\b(?P<iso>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)\b|\b(?P<first>\d\d?)[/.](?P<second>\d\d?)[/.]" + year,
            _figures,
        ),
        (rf"\b{day} (?:of )?{prefix}{month},?(?: {year})?", _named_day),
        (rf"\b{month} {day}\b(?!:)(?:,? {year})?", _named_day),
        (rf"\b{prefix}{month},?(?: of)? (?:ב-?)?{year}", _named_month),
        (
            rf"\b(?:in|during|since|by|last|this|early|late|mid|en|depuis|debut|fin) {month}(?P<year>)",
            _named_month,
        ),
        (rf"\b(?:au mois d(?:e |['’])|ב?חודש |ב){month}(?P<year>)", _named_month),
        (rf"(?<!\w)(?:(?:in|during|since|en|depuis) (?:l['’]annee )?|ב-?|(?:ב?שנת) ){year}", _a_year),
        (rf"\b{number} {unit} ago\b", _ago),
        (rf"\bil y a {number} {unit}", _ago),
        (rf"(?:\bלפני|(?<!\w)לפני) (?:(?P<pair>{_any(_PAIRS)})\b|(?:{number} )?{unit})", _ago),
        (rf"\b(?:last|past) {number} {unit}", _lately),
        (rf"\b{number} (?:dernier|derniere)s? {unit}", _lately),
        (rf"\bב?-?{number} {unit} האחרו(?:נים|נות)", _lately),
        (rf"\b(?:(?P<last>last|past|previous)|this) {wide}", _calendar),
        (rf"\b(?:cette|ce|le|la|l['’])\s?{wide}(?P<last> derni\w+| pass\w+)", _calendar),
        (rf"\b(?:cette|ce) {wide}(?P<last>)", _calendar),
        (rf"\b[בה]?{wide} (?:(?P<last>שעברה?|האחרונה?|הקודמת?)|ה?זאת|ה?זו?ה?)", _calendar),
        (r"\bה(?P<unit>שבוע|חודש|שנה)(?P<last>)\b", _calendar),
        (rf"(?<!\w)(?P<back>{_any(_BACK)})(?!\w)", _a_day),
        (r"(?<!\w)[במש](?P<back>אתמול|שלשום)(?!\w)", _a_day),
        (r"\blast night\b", lambda _, now: _back(1, now)),
        (r"\bthis (?:morning|afternoon|evening)\b|\bce (?:matin|soir)\b", lambda _, now: _back(0, now)),
        (rf"\b(?:on|last|this|since|le|ce|depuis) {weekday}", _a_weekday),
        (rf"\b{weekday} (?:dernier|passe)", _a_weekday),
        (rf"\b(?:ב?יום |ב(?=שבת)){weekday}", _a_weekday),
    )
    return tuple((re.compile(pattern), read) for pattern, read in forms)
