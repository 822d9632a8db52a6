"""The types of the API's arguments. Surfaces that use pydantic (REST, MCP) have their JSON schemas from here;
`agent/services/arguments.py` checks the values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_args

from pydantic_core import core_schema

from agent.types import MAX_MESSAGE
from memory.audience import Place
from memory.facts.decide import MAX_CONTENT
from memory.records import MemoryType, TaskStatus

T = TypeVar("T")

Where = Place | str | None
"""A place, its written form, or None for a private conversation."""
MOST_LISTED = 10_000
"""The highest `limit` of a list."""
MOST_FOUND = 100
"""The highest `limit` of what a model is to read."""
MAX_QUERY = MAX_MESSAGE
"""Characters of a search."""
MOST_SUBJECTS, MAX_SUBJECT = 50, 100
"""Subjects of a fact, and characters of one."""


@dataclass(frozen=True, eq=False)
class Schema:
    """The JSON schema of an argument, for surfaces that use pydantic. It lets any value pass, for the API to
    check; `read` makes of a text what it means."""

    schema: Mapping[str, Any]
    read: Callable[[Any], Any] = lambda value: value

    def __get_pydantic_core_schema__(self, *_: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        return dict(self.schema)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value) else value


def _text(description: str, **schema: Any) -> Schema:
    return Schema({"type": "string", "description": description, **schema})


Content = Annotated[
    str,
    _text("one fact: a sentence that names the person", minLength=1, maxLength=MAX_CONTENT, pattern=r"\S"),
]
Subjects = Annotated[
    Sequence[str],
    Schema(
        {
            "type": "array",
            "items": {"type": "string", "maxLength": MAX_SUBJECT},
            "maxItems": MOST_SUBJECTS,
            "description": "lower-case tags, people's names too",
        }
    ),
]
Ttl = Annotated[str, _text('how long it holds: "1h", "7d", "2w" …; null for good', maxLength=100)] | None
Type = Annotated[MemoryType, Schema({"type": "string", "enum": [*get_args(MemoryType)]})]
Importance = Annotated[float, Schema({"type": "number", "minimum": 0, "maximum": 1})]
MemoryId = Annotated[str, _text("its id, or the first eight characters", pattern="^[0-9a-f-]{8,36}$")]


def _limit(most: int) -> Schema:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "description": "how many at most"}
    return Schema(schema, _whole)


Limit = Annotated[int, _limit(MOST_LISTED)]
FewLimit = Annotated[int, _limit(MOST_FOUND)]
Query = Annotated[str, _text("what to look for, in words; empty for the newest", maxLength=MAX_QUERY)]
Moment = datetime | str | None
"""A time with a zone, as such or in ISO 8601; a date alone is that day by the person's clock."""


class Page(list[T]):
    """A part of a longer list."""

    next: str | None = None
    """The `cursor` with which the following part is asked for; None at the end."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:
        super().__init__(items)
        self.next = next


Status = Annotated[TaskStatus, Schema({"type": "string", "enum": [*get_args(TaskStatus)]})] | None
DueTime = (
    Annotated[
        str | datetime,
        _text(
            "ISO 8601; without an offset by the person's clock, a date alone is 09:00; null leaves it as it "
            'is, "never" removes it',
            maxLength=60,
        ),
    ]
    | None
)
