"""The answer of a consolidation as pydantic models: the requested form, and all forms that models write.

Each value is parsed separately. An invalid value takes its default; an item without a required value is left
out. `faults` say where and why.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic import WithJsonSchema as Schema

from agent.models.ask import OPTIONAL, list_of, short_text, strict_object
from agent.models.json_objects import objects_in, simple_keys, up_to_the_last_end
from agent.turn.context.budget import lines_that_fit
from agent.types.budget import Budget
from memory.facts.decide import RULINGS, Ruling
from memory.people.profile import Name, Word, single_line
from memory.people.profile_entries import Entry, entries_from_model
from memory.people.tasks import bare_id
from memory.records import TaskStatus
from prompts.echo import is_echo

MEMORY_SUMMARY = Budget(300)
MOST_ITEMS = 50
"""The most items of a list that are read."""
_ANY_TIME = datetime.fromtimestamp(0, UTC)


def _field(names: str, default: Any = ...) -> Any:
    """Return a field that models write under any of these names, in the form of `simple_keys`."""
    return Field(default, validation_alias=AliasChoices(*names.split()))


def _text(longest: int = 160) -> Schema:
    return Schema(short_text(longest))


def list_schema(item: dict[str, Any]) -> Schema:
    """Return the schema of a list of up to four items."""
    return Schema(list_of(4, item))


def _enum(*words: str) -> Schema:
    return Schema({"type": "string", "enum": [*words]})


def schema_of(model: type[BaseModel], omitted: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of the fields that have one. OpenAI's strict mode accepts it: it has no
    bounds."""
    marks = {name: field.metadata for name, field in model.model_fields.items() if name not in omitted}
    forms = (
        (name, mark.json_schema) for name, of in marks.items() for mark in of if isinstance(mark, Schema)
    )
    return strict_object(**{name: form for name, form in forms if form})


def numbers_in(value: Any) -> list[int]:
    """Return the numbers in any notation: ``3``, ``"(3)"``, ``[3, "#4"]``."""
    return [int(digits) for digits in re.findall(r"\d{1,6}", str(value))][:MOST_ITEMS]


class Context(NamedTuple):
    """The context for parsing an answer."""

    faults: list[str]
    ours: Collection[str]
    """Hachi's own sentences in the prompt."""


def _copied(text: Any, info: ValidationInfo) -> bool:
    return is_echo(str(text), info.context.ours if isinstance(info.context, Context) else ())


def _original(value: Any, info: ValidationInfo) -> Any:
    """Reject text that a small model copied from the prompt, such as a heading."""
    if _copied(value, info):
        raise ValueError("is copied out of the prompt")
    return value


_Original = AfterValidator(_original)


class Written(BaseModel):
    """An object of an answer. An invalid value does not invalidate the others."""

    model_config = ConfigDict(frozen=True)
    needed: ClassVar[str] = ""
    """The optional field without which the object is left out."""

    @model_validator(mode="before")
    @classmethod
    def _by_simple_keys(cls, value: Any) -> Any:
        return simple_keys(value) if isinstance(value, Mapping) else value

    @field_validator("*", mode="wrap")
    @classmethod
    def _leniently(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Parse each item of a list separately; use the default for an invalid value."""
        name = str(info.field_name)
        field = cls.model_fields[name]
        try:
            if get_origin(field.annotation) is not tuple or not isinstance(value, list | tuple | None):
                return handler(value)
            return tuple(_each(name, value or (), handler, info))
        except ValidationError as error:
            if field.is_required() or name == cls.needed:
                raise
            _note_fault(info, name, error)
            return field.get_default()


def _each(name: str, values: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Iterator[Any]:
    for number, item in enumerate(values[:MOST_ITEMS]):
        try:
            yield from handler([item])
        except ValidationError as error:
            _note_fault(info, f"{name}[{number}]", error, inside=1)
    if len(values) > MOST_ITEMS:
        _note(info, f"{name}: {len(values)} are more than the {MOST_ITEMS} that are read")


def _note_fault(info: ValidationInfo, where: str, error: ValidationError, inside: int = 0) -> None:
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, (where, *first["loc"][inside:])))
    _note(info, f"{path}: {first['msg'].removeprefix('Value error, ').lower()}")


def _note(info: ValidationInfo, fault: str) -> None:
    if isinstance(info.context, Context):
        info.context.faults.append(fault)


Cited = Annotated[tuple[int, ...], BeforeValidator(numbers_in), list_schema({"type": "integer"})]
"""The numbers of the messages that state an item, from 1."""
_ShortId = Schema(OPTIONAL | {"maxLength": 36})
_ItemId = Annotated[Annotated[str, single_line(100)] | None, BeforeValidator(bare_id), _ShortId]
_Values = Annotated[
    tuple[Annotated[str, single_line(4000, required=False)], ...], Field(max_length=MOST_ITEMS)
]
WORDS_OF_IMPORTANCE = {"low": 0.3, "medium": 0.6, "high": 0.9}


def _weight(value: object) -> object:
    """Convert a word that models write in place of a number."""
    return WORDS_OF_IMPORTANCE.get(value.strip().lower(), value) if isinstance(value, str) else value


class NewFact(Written):
    text: Annotated[str, single_line(2000), _Original, _text()] = _field("text fact content")
    messages: Cited = _field("messages message cites", ())
    importance: Annotated[float, BeforeValidator(_weight), Field(ge=0, le=1), Schema({"type": "number"})] = (
        WORDS_OF_IMPORTANCE["medium"]
    )
    tags: Annotated[tuple[Annotated[Name, _Original], ...], list_schema(short_text(40))] = _field(
        "tags subjects", ()
    )
    ttl: Annotated[str | None, _ShortId] = None
    """Its lifetime, as the model wrote it."""
    replaces: Annotated[str | None, _ShortId] = None
    """The id of the known fact that it corrects or completes, as the model wrote it."""
    number: int = 0
    """Its position in the answer, from 1; rulings refer to it."""

    @property
    def words(self) -> str:
        return self.text


class NewPreference(Written):
    """A value for the profile. Validation fails if its field does not accept the value."""

    needed = "value"
    key: Annotated[Name, _text()] = _field("key field")
    value: Annotated[
        bool | int | float | str | _Values | None,
        single_line(4000, required=False),
        _Original,
        _text(),
    ] = None
    messages: Cited = _field("messages message cites", ())
    replaces: Annotated[str | None, single_line(4000, required=False), _ShortId] = None
    """The list item that the value replaces."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.entries(_ANY_TIME)  # raises if it does not fit
        return self

    def entries(self, said_at: datetime) -> list[Entry]:
        return entries_from_model(self.key, self.value, said_at, self.replaces)

    @property
    def words(self) -> str:
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return f"{self.key}: {', '.join(map(str, values))}"


class TaskUpdate(Written):
    id: _ItemId = None
    """None or empty: a new task, or the task with a matching description."""
    description: Annotated[str, single_line(1000, required=False), _Original, _text()] = _field(
        "description task text", ""
    )
    messages: Cited = _field("messages message cites", ())
    status: Annotated[TaskStatus | None, Word, _enum(*get_args(TaskStatus))] = None
    """None: an existing task keeps its status, and a new one is open."""

    @model_validator(mode="after")
    def _names_a_task(self) -> Self:
        if not (self.id or self.description):
            raise ValueError("a task needs an id or a description")
        return self

    @property
    def words(self) -> str:
        return self.description


class FollowUp(Written):
    """A check-in to plan for after an event, or a change of a planned one."""

    id: _ItemId = None
    """The id of the planned check-in that these messages move or settle; None or empty: a new one."""
    about: Annotated[str, single_line(300, required=False), _Original, _text()] = _field("about text", "")
    after: Annotated[str | None, single_line(100, required=False), Schema(OPTIONAL | {"maxLength": 40})] = (
        None
    )
    """The time after the event, as the model wrote it; None if nothing is to be asked any more."""
    messages: Cited = _field("messages message cites", ())


Item = NewFact | NewPreference | TaskUpdate


class FactRuling(Written):
    """The model's ruling on two facts."""

    new: Annotated[str, Field(coerce_numbers_to_str=True), _text()]
    """A short id, or the number in `new_facts` as ``#1``."""
    old: Annotated[str, Field(coerce_numbers_to_str=True), _text()]
    """A short id."""
    ruling: Annotated[Ruling | Literal["both"], Word, _enum(*RULINGS, "both")]


def _without_copies(text: str | None, info: ValidationInfo) -> str:
    return "\n".join(part for part in (text or "").splitlines() if not _copied(part, info))


class ConsolidationAnswer(Written):
    summary: Annotated[str, AfterValidator(_without_copies), _text(1_000)] = _field("summary", "")
    """The summary of the conversation; empty if the model wrote none."""
    new_facts: Annotated[tuple[NewFact, ...], list_schema(schema_of(NewFact))] = _field("newfacts facts", ())
    new_preferences: Annotated[tuple[NewPreference, ...], list_schema(schema_of(NewPreference))] = _field(
        "newpreferences preferences", ()
    )
    task_updates: Annotated[tuple[TaskUpdate, ...], list_schema(schema_of(TaskUpdate))] = _field(
        "taskupdates tasks", ()
    )
    memory_summary: Annotated[str | None, AfterValidator(_without_copies), _text(500)] = _field(
        "memorysummary", None
    )
    """The summary of the person's facts; empty if the model wrote none."""
    rulings: Annotated[tuple[FactRuling, ...], list_schema(schema_of(FactRuling))] = _field("rulings", ())
    follow_ups: Annotated[tuple[FollowUp, ...], list_schema(schema_of(FollowUp))] = _field("followups", ())
    faults: tuple[str, ...] = ()
    """The invalid values of the answer, and why."""
    whole: bool = True
    """False if the answer was cut off, refused or in another form, so that something may be missing."""

    @field_validator("new_facts", mode="before")
    @classmethod
    def _numbered(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return [{**one, "number": n} if isinstance(one, dict) else one for n, one in enumerate(value, 1)]

    @property
    def items(self) -> tuple[Item, ...]:
        return (*self.new_facts, *self.new_preferences, *self.task_updates)

    def to_trace(self) -> dict[str, Any]:
        data = self.model_dump(mode="json", exclude_none=True)
        return {"updates": {name: data.pop(name) for name in ITEMS}, **data}


ITEMS = ("new_facts", "new_preferences", "task_updates")
_NAMES = {
    str(alias): name
    for name, field in ConsolidationAnswer.model_fields.items()
    for alias in getattr(field.validation_alias, "choices", ())
}


def read_answer(answer: str, summary: Budget, ours: Collection[str] = ()) -> ConsolidationAnswer:
    """Parse the model's answer, which may be split into several objects, and leave out copies of sentences in
    `ours`. If it was cut off, everything up to the last complete item counts."""
    whole, closed = up_to_the_last_end(answer)
    fields: dict[str, Any] = {}
    for part in _parts([one.value for one in objects_in(answer if closed else whole)]):
        for name, value in part:
            before = fields.get(name)
            value = [value] if name in ITEMS and isinstance(value, dict) else value
            if isinstance(before, list) and isinstance(value, list):
                # Rulings refer to new facts by their number in the first object.
                fields[name] = before if name == "rulings" else [*before, *value]
            elif value or name not in fields:
                fields[name] = value
    faults = [] if fields and closed else ["the answer is cut off, or not the object that was asked for"]
    read = ConsolidationAnswer.model_validate(fields, context=Context(faults, ours))
    faults += [] if "summary" in fields or not fields else ["summary: it is missing"]
    listed = [fields.get(name) or [] for name in ITEMS]
    lists = all(isinstance(one, list) and not any(isinstance(item, str) for item in one) for one in listed)
    return read.model_copy(
        update={
            "summary": lines_that_fit(read.summary, summary),
            "memory_summary": lines_that_fit(read.memory_summary or "", MEMORY_SUMMARY),
            "faults": tuple(faults),
            "whole": closed and lists and isinstance(fields.get("summary"), str),
        }
    )


def _parts(value: Any) -> Iterator[list[tuple[str, Any]]]:
    """Yield the requested fields of each object in a value that has any, with their names."""
    if isinstance(value, dict):
        fields = [(_NAMES[name], one) for name, one in simple_keys(value).items() if name in _NAMES]
        if {name for name, _ in fields} & {"summary", *ITEMS}:
            yield fields
            return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in inner:
        yield from _parts(part)
