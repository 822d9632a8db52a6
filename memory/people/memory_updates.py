"""The extractor's answer: the updates found in one exchange. It is applied as a whole or not at all."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from memory.people.profile import Name, Word, line
from memory.people.profile_entries import Entry, entries_found
from memory.people.task_wording import bare_id
from memory.records import TaskStatus

MOST_UPDATES = 50
"""The most updates of each kind in one answer. An extractor that returns more is wrong."""

_ANY_TIME = datetime.fromtimestamp(0, UTC)


class _Answered(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NewFact(_Answered):
    text: Annotated[str, line(2000)]
    importance: Annotated[Literal["low", "medium", "high"], Word]
    tags: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    ttl: Annotated[str | None, BeforeValidator(lambda value: value if isinstance(value, str) else None)] = (
        None
    )
    """How long it holds, as the model wrote it."""
    replaces: Annotated[
        str | None, BeforeValidator(lambda value: value if isinstance(value, str) else None)
    ] = None
    """The id of the known fact that it corrects or completes, as the model wrote it."""


class NewPreference(_Answered):
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

    replaces: Annotated[str | None, line(4000, required=False)] = None
    """The item of a list that the value takes the place of."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        entries_found(self.key, self.value, _ANY_TIME)  # raises if it does not fit
        return self


class TaskUpdate(_Answered):
    id: Annotated[Annotated[str, line(100)] | None, BeforeValidator(bare_id)] = None
    """None or empty: a new task, or the task that the description matches."""
    description: Annotated[str, line(1000, required=False)] = ""
    status: Annotated[TaskStatus, Word]

    @model_validator(mode="after")
    def _names_a_task(self) -> Self:
        if not (self.id or self.description):
            raise ValueError("a task needs an id or a description")
        return self


def _none_is_empty(value: Any) -> Any:
    return () if value is None else value


Few = Field(max_length=MOST_UPDATES)
Listed = BeforeValidator(_none_is_empty)


class MemoryUpdates(_Answered):
    """All updates that were found in one exchange. Missing lists are empty."""

    new_facts: Annotated[tuple[NewFact, ...], Few, Listed] = ()
    new_preferences: Annotated[tuple[NewPreference, ...], Few, Listed] = ()
    task_updates: Annotated[tuple[TaskUpdate, ...], Few, Listed] = ()


def entries_of(preferences: Sequence[NewPreference], said_at: datetime) -> list[Entry]:
    """The entries for these updates."""
    return [
        entry for new in preferences for entry in entries_found(new.key, new.value, said_at, new.replaces)
    ]
