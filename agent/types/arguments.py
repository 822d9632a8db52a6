"""The types of the API's arguments. Python, REST and MCP parse them with pydantic; JSON schemas and error
texts come from here. `agent.types.checks` checks a method's arguments by its annotations.

A parser raises ValueError with what is wrong, worded to follow the argument's name.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from reprlib import repr as shown
from typing import Annotated, Any, TypeVar, get_args

from pydantic_core import core_schema

from agent.errors import BadInput
from memory.audience import Place
from memory.records import MAX_CONTENT, MemoryType, TaskStatus
from memory.text import is_single_line, storable
from memory.text.ttl import read_ttl

T = TypeVar("T")

MOST_LISTED = 10_000
"""The highest `limit` of a list."""
MOST_FOUND = 100
"""The highest `limit` of results for a model."""
MAX_MESSAGE = 100_000
"""The most characters of a message or a query; far more than any chat platform allows."""
MAX_NAME = 2_000
"""The most characters of a name or an id; some clients use long ids of conversations."""
MOST_NESTED = 20
"""The most levels of nested places."""
MOST_SUBJECTS, MAX_SUBJECT = 50, 100
"""The most subjects of a fact, and the most characters of one."""
FIRST_YEAR, LAST_YEAR = 1000, 9000
"""The years of accepted times. Databases and calendars disagree outside, and a lifetime may be added."""

NO_NAME = "pass one line of printable text"
DOTS = frozenset({".", ".."})
"""Not accepted as names: HTTP clients shorten such paths, so that a request reaches another row."""


@dataclass(frozen=True, eq=False)
class Argument:
    """Metadata of a type: how to read a value, and the JSON schema."""

    read: Callable[[Any], Any]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, *_: Any) -> Any:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        return dict(self.schema)


class InvalidValue(ValueError):
    """A value is not of the right kind. `what` says so: ``no text``, ``not one of …``."""

    def __init__(self, value: object, what: str) -> None:
        told = f"{value:g}" if type(value) is float else shown(value)
        super().__init__(f"{told} is {what}")


def refuse(name: str, value: object, what: str) -> BadInput:
    return BadInput(f"{name}: {InvalidValue(value, what)}")


def read_value(name: str, read: Callable[[Any], T], value: object) -> T:
    """Parse a value, and name the argument in the error. Raises BadInput."""
    try:
        return read(value)
    except ValueError as error:
        raise BadInput(f"{name}: {error}") from None


def text_up_to(most: int, instead: str = "say it in fewer words") -> Callable[[object], str]:
    """Return a parser of texts of at most `most` characters. It replaces unstorable characters."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise InvalidValue(value, "not text")
        if len(value) > most:
            raise ValueError(f"longer than {most:,} characters; {instead}")
        return storable(value)

    return read


short_text = text_up_to(MAX_NAME)


def read_name(value: object) -> str:
    """Return the name as it is stored and compared."""
    text = short_text(value)
    if text != value or not is_single_line(text) or text.strip() in DOTS:
        raise ValueError(NO_NAME)
    return text.strip()


def read_user(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(value, "not a user; pass the user's id as text")
    return read_name(value)


def place_of(place: object) -> Place:
    if not isinstance(place, Place | str | None):
        raise refuse("place", place, "not the name of a place, such as acme/general")
    found = place if isinstance(place, Place) else Place.parse(place)
    if len(found.path) > MOST_NESTED:
        raise BadInput(f"place: more than {MOST_NESTED} places inside each other")
    for part in found.path:
        read_value("place", read_name, part)
    return found


def moment_of(value: object) -> datetime:
    """Return an aware time in UTC, from an aware time or ISO 8601."""
    example = "such as 2026-01-10T09:30:00+00:00"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise InvalidValue(value, f"not an ISO 8601 time, {example}")
    if moment.tzinfo is None:
        raise ValueError(f"{str(value)!r} needs a time zone, {example}")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"{str(value)!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}")
    return moment.astimezone(UTC)


def number(what: str, fits: Callable[[float], bool], kind: Callable[[float], T]) -> Callable[[object], T]:
    """Return a parser of numbers that fit, also from text. `what` says which do."""

    def read(value: object) -> T:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?", value, re.ASCII):
            value = float(value)
        if not isinstance(value, int | float) or isinstance(value, bool) or not fits(value):
            raise InvalidValue(value, f"not {what}")
        return kind(value)

    return read


def whole(most: int) -> Callable[[object], int]:
    return number(f"a whole number from 1 to {most}", lambda n: 1 <= n <= most and not n % 1, int)


def choice_of(literal: Any) -> Argument:
    allowed = get_args(literal)

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise InvalidValue(value, f"not one of {', '.join(map(repr, allowed))}")
        return value

    return Argument(read, {"type": "string", "enum": [*allowed]})


def listed(value: object) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise InvalidValue(value, "not a list")
    return [*value]


def _content(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(value, "not text; write the fact as a sentence")
    if not value.strip():
        raise ValueError("it is empty; write the fact as a sentence")
    return text_up_to(MAX_CONTENT, "say it as single facts")(value)


def _subjects(value: object) -> tuple[str, ...]:
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    found = tuple(value) if is_list and isinstance(value, Iterable) else ()
    if not is_list or not all(isinstance(subject, str) for subject in found):
        raise InvalidValue(value, "not a list of texts, such as ['sport']")
    if len(found) > MOST_SUBJECTS or any(len(subject) > MAX_SUBJECT for subject in found):
        raise ValueError(f"more than {MOST_SUBJECTS} texts, or one of more than {MAX_SUBJECT} characters")
    return tuple(map(storable, found))


def _ttl(value: object) -> Any:
    if not read_ttl(value).understood:
        raise InvalidValue(value, "not a duration such as 1h, 7d, 2w or never")
    return value


def _moment(value: object) -> Any:
    """Return a time. A date stays text until the person's zone is known: see `agent.types.meanings`."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?\d", value, re.ASCII):
        moment_of(f"{value}T00:00+00:00")
        return value
    return moment_of(value)


def async_function(value: object) -> object:
    if not any(inspect.iscoroutinefunction(one) for one in (value, type(value).__call__)):
        raise InvalidValue(value, "not an async function")
    return value


def _limit(most: int) -> Argument:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "description": "how many at most"}
    return Argument(whole(most), schema)


def _text(read: Callable[[Any], Any], description: str, **schema: Any) -> Argument:
    return Argument(read, {"type": "string", "description": description, **schema})


ShortText = Annotated[str, Argument(short_text)]
"""A name, an id or a word."""
ShortTexts = Annotated[Collection[str], Argument(lambda value: [*map(short_text, listed(value))])]
Instant = Annotated[datetime, Argument(moment_of)]
User = Annotated[str, Argument(read_user)]
Name = Annotated[str, Argument(read_name)]
"""The name of a person or a thing, for display."""
Where = Annotated[Place | str, Argument(place_of)] | None
"""A place, its written form, or None for a private conversation."""
Text = Annotated[str, Argument(text_up_to(MAX_MESSAGE, "send it in parts"))]
"""A text by a person or a program."""
Content = Annotated[
    str,
    _text(
        _content,
        "one fact: a sentence that names the person",
        minLength=1,
        maxLength=MAX_CONTENT,
        pattern=r"\S",
    ),
]
Subjects = Annotated[
    Sequence[str],
    Argument(
        _subjects,
        {
            "type": "array",
            "items": {"type": "string", "maxLength": MAX_SUBJECT},
            "maxItems": MOST_SUBJECTS,
            "description": "lower-case tags, people's names too",
        },
    ),
]
Ttl = (
    Annotated[str, _text(_ttl, 'how long it holds: "1h", "7d", "2w" …; null for good', maxLength=100)] | None
)
Type = Annotated[MemoryType, choice_of(MemoryType)]
Importance = Annotated[
    float,
    Argument(
        number("a number from 0 to 1", lambda n: 0 <= n <= 1, float),
        {"type": "number", "minimum": 0, "maximum": 1},
    ),
]
Seconds = Annotated[float, Argument(number("a number of seconds above 0", lambda n: 0 < n < inf, float))]
MemoryId = Annotated[
    str, _text(short_text, "its id, or the first eight characters", pattern="^[0-9a-f-]{8,36}$")
]
Limit = Annotated[int, _limit(MOST_LISTED)]
FewLimit = Annotated[int, _limit(MOST_FOUND)]
Query = Annotated[
    str,
    _text(
        text_up_to(MAX_MESSAGE, "ask in fewer words"),
        "what to look for, in words; empty for the newest",
        maxLength=MAX_MESSAGE,
    ),
]
Moment = Annotated[datetime | str, Argument(_moment)] | None
"""A time with a zone, as a `datetime` or in ISO 8601. A date means that day in the person's zone."""
Status = Annotated[TaskStatus, choice_of(TaskStatus)] | None
DueTime = (
    Annotated[
        str | datetime,
        _text(
            lambda value: (short_text if isinstance(value, str) else moment_of)(value),
            "ISO 8601; without an offset by the person's clock, a date alone is 09:00; null leaves it as it "
            'is, "never" removes it',
            maxLength=60,
        ),
    ]
    | None
)


class Page(list[T]):
    """A part of a longer list."""

    next: str | None = None
    """The `cursor` of the next page; None on the last page."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:
        super().__init__(items)
        self.next = next
