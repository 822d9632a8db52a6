"""The extractor's answer: the updates found in one exchange.

Each value is read for itself. One that cannot be read takes its default; an item that is nothing without it
is left out. The faults are added to the context of the validation, a list, as texts that say where and why.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from memory.people.profile import Name, Word, line
from memory.people.profile_entries import Entry, entries_found
from memory.people.tasks import bare_id
from memory.records import TaskStatus

MOST_UPDATES = 50
"""The most updates of each kind that are read of one answer."""
MOST_TAGS = 20

_ANY_TIME = datetime.fromtimestamp(0, UTC)


def otherwise(default: Any) -> WrapValidator:
    """Take the default for a value that cannot be read."""

    def read(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            _note_fault(info, str(info.field_name), error)
            return default

    return WrapValidator(read)


def each(most: int) -> WrapValidator:
    """Read each item of a list for itself. Leave out those that cannot be read, and those beyond `most`."""

    def read(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if not isinstance(value, list | tuple):
            return handler(() if value is None else value)
        kept: list[Any] = []
        for number, item in enumerate(value[:most]):
            try:
                kept += handler([item])
            except ValidationError as error:
                _note_fault(info, f"{info.field_name}[{number}]", error, inside=1)
        if len(value) > most:
            _note(info, f"{info.field_name}: {len(value)} are more than the {most} that are read")
        return tuple(kept)

    return WrapValidator(read)


def _note_fault(info: ValidationInfo, where: str, error: ValidationError, inside: int = 0) -> None:
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, (where, *first["loc"][inside:])))
    _note(info, f"{path}: {first['msg'].removeprefix('Value error, ').lower()}")


def _note(info: ValidationInfo, fault: str) -> None:
    if isinstance(info.context, list):
        info.context.append(fault)


class Answered(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def numbers_in(value: Any) -> list[int]:
    """Return the numbers, however they are written: ``3``, ``"(3)"``, ``[3, "#4"]``."""
    return [int(digits) for digits in re.findall(r"\d{1,6}", str(value))][:MOST_UPDATES]


class Cited(Answered):
    messages: Annotated[tuple[int, ...], BeforeValidator(numbers_in), otherwise(())] = ()
    """The numbers of the messages that state it, from 1."""


class NewFact(Cited):
    text: Annotated[str, line(2000)]
    importance: Annotated[Literal["low", "medium", "high"], Word, otherwise("medium")] = "medium"
    tags: Annotated[tuple[Name, ...], each(MOST_TAGS), otherwise(())] = ()
    ttl: Annotated[str | None, otherwise(None)] = None
    """How long it holds, as the model wrote it."""
    replaces: Annotated[str | None, otherwise(None)] = None
    """The id of the known fact that it corrects or completes, as the model wrote it."""
    number: int = 0
    """Its place in the answer, from 1, by which rulings name it."""


class NewPreference(Cited):
    """A value for the document. Validation fails if its field does not accept the value."""

    key: Name
    value: Annotated[
        bool
        | int
        | float
        | str
        | Annotated[tuple[Annotated[str, line(4000, required=False)], ...], Field(max_length=MOST_UPDATES)]
        | None,
        line(4000, required=False),
    ] = None
    replaces: Annotated[str | None, line(4000, required=False), otherwise(None)] = None
    """The item of a list that the value takes the place of."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        entries_found(self.key, self.value, _ANY_TIME)  # raises if it does not fit
        return self


class TaskUpdate(Cited):
    id: Annotated[Annotated[str, line(100)] | None, BeforeValidator(bare_id), otherwise(None)] = None
    """None or empty: a new task, or the task that the description matches."""
    description: Annotated[str, line(1000, required=False), otherwise("")] = ""
    status: Annotated[TaskStatus | None, Word, otherwise(None)] = None
    """None: a task keeps its own, and a new one is open."""

    @model_validator(mode="after")
    def _names_a_task(self) -> Self:
        if not (self.id or self.description):
            raise ValueError("a task needs an id or a description")
        return self


def _numbered(value: Any) -> Any:
    facts = enumerate(value, 1) if isinstance(value, list | tuple) else ()
    return [one | {"number": n} if isinstance(one, dict) else one for n, one in facts] if facts else value


class Findings(Answered):
    """All updates that were found in one exchange. Missing lists are empty."""

    new_facts: Annotated[
        tuple[NewFact, ...], each(MOST_UPDATES), BeforeValidator(_numbered), otherwise(())
    ] = ()
    new_preferences: Annotated[tuple[NewPreference, ...], each(MOST_UPDATES), otherwise(())] = ()
    task_updates: Annotated[tuple[TaskUpdate, ...], each(MOST_UPDATES), otherwise(())] = ()


def entries_of(preferences: Sequence[NewPreference], said_at: datetime) -> list[Entry]:
    """Return the entries for these updates."""
    return [
        entry for new in preferences for entry in entries_found(new.key, new.value, said_at, new.replaces)
    ]
