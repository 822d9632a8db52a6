"""The long-term user context: a person's statements about themselves, as a typed document.

It is stored as entries, one per statement, with the time of each. Entries are merged, never rewritten: the
latest single value wins; lists grow and keep their newest items. An entry with an empty value deletes the
earlier values. Everything here is pure; `profile_store` stores it.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from memory.facts.compare.normalise import normalise
from memory.facts.derived import SET_BY_HAND
from memory.people.task_wording import bare_id
from memory.records import Memory, Task, TaskStatus
from memory.text import one_line

MOST: Mapping[str, int] = MappingProxyType(
    {"profile.goals": 10, "preferences.other_notes": 20, "conversation_themes": 12}
)
"""The fields that are lists, and how many of the newest items each keeps."""

MOST_UPDATES = 50
"""The most updates of each kind in one answer. An extractor that returns more is wrong."""

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})+")
_ANY_TIME = datetime.fromtimestamp(0, UTC)
_LONGEST_ITEM = 200  # part of a key, whose length PostgreSQL limits


def _line(longest: int, *, required: bool = True) -> BeforeValidator:
    """One line of at most `longest` characters. Pydantic refuses other types."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = one_line(value) if len(value) <= 10 * longest else value
        if len(text) > longest:
            raise ValueError(f"has {len(text):,} characters, more than the {longest:,} that are kept")
        if required and not text:
            raise ValueError("is empty")
        return text

    return BeforeValidator(read)


def _word(value: Any) -> Any:
    """An enumerated value, without regard to spacing and capitals."""
    return "_".join(re.split(r"[\s_-]+", one_line(value).casefold())) if isinstance(value, str) else value


def _language(value: Any) -> Any:
    """A language name or code. Nothing else is accepted, because the prompt shows it as an instruction."""
    if not isinstance(value, str):
        return value
    text = one_line(value) if len(value) <= 400 else ""
    if _LANGUAGE_CODE.fullmatch(text):
        text = text.replace("_", "-")
    elif not all(c in " -()" or unicodedata.category(c)[0] in "LM" for c in text):
        text = ""
    if not 2 <= len(text) <= 40 or len(text.split()) > 3:
        raise ValueError("is no language such as Hebrew, français or pt-BR")
    return text


@cache
def _zones() -> dict[str, str]:
    return {name.casefold(): name for name in available_timezones() - {"localtime", "Factory"}}


def _zone(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = _zones().get(one_line(value[:100]).replace(" ", "_").casefold())
    if name is None:
        raise ValueError("is no time zone such as Europe/Paris")
    return name


Name = Annotated[str, _line(100)]
Phrase = Annotated[str, _line(200)]
Note = Annotated[str, _line(400)]
Language = Annotated[str, BeforeValidator(_language)]
Zone = Annotated[str, BeforeValidator(_zone)]
Word = BeforeValidator(_word)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Group = TypeVar("Group", bound=_Frozen)


class Profile(_Frozen):
    """Who the person is. None and empty mean unknown."""

    name: Name | None = None
    native_language: Name | None = None
    level: Annotated[Literal["beginner", "intermediate", "advanced", "expert"], Word] | None = None
    role: Phrase | None = None
    location: Phrase | None = None
    goals: tuple[Phrase, ...] = ()
    """Newest first, as all lists here."""
    timezone: Zone | None = None
    """An IANA name."""


class Preferences(_Frozen):
    """How the person wants to be answered. None and empty mean unknown."""

    language: Language | None = None
    answer_length: Annotated[Literal["short", "medium", "long"], Word] | None = None
    code_examples: Annotated[Literal["none", "simple", "detailed"], Word] | None = None
    tone: Annotated[Literal["casual", "formal"], Word] | None = None
    prefers_bullets: Annotated[bool, Word] | None = None
    other_notes: tuple[Note, ...] = ()


class _OtherFields(_Frozen):
    """The fields outside the profile and the preferences."""

    conversation_themes: tuple[Name, ...] = ()
    memory_summary: Annotated[str, _line(4000)] | None = None


@dataclass(frozen=True, slots=True)
class UserContext:
    """The whole document. Lists are newest first."""

    profile: Profile = field(default_factory=Profile)
    preferences: Preferences = field(default_factory=Preferences)
    long_term_facts: tuple[Memory, ...] = ()
    open_tasks: tuple[Task, ...] = ()
    conversation_themes: tuple[str, ...] = ()
    memory_summary: str | None = None
    last_updated: datetime | None = None
    """The time of the latest statement; None if there is none."""

    @property
    def zone(self) -> tzinfo:
        """The person's time zone; UTC if unknown."""
        try:
            return ZoneInfo(self.profile.timezone) if self.profile.timezone else UTC
        except (KeyError, OSError, ValueError):  # this machine may not know the zone
            return UTC

    def to_json(self) -> dict[str, Any]:
        """JSON-compatible; times are ISO 8601."""
        return {
            "profile": self.profile.model_dump(mode="json"),
            "preferences": self.preferences.model_dump(mode="json"),
            "long_term_facts": [_shown(fact, _FACT) for fact in self.long_term_facts],
            "open_tasks": [_shown(task, _TASK) for task in self.open_tasks],
            "conversation_themes": list(self.conversation_themes),
            "memory_summary": self.memory_summary,
            "last_updated": _plain(self.last_updated),
        }


_TASK = ("id", "description", "status", "created_at", "last_updated")
_FACT = (
    *("id", "content", "subjects", "created_at", "expires_at"),
    *("source", "type", "importance", "last_accessed_at"),
)


def _shown(record: Memory | Task, fields: Iterable[str]) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in fields}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


# The extractor's answer. It is applied as a whole or not at all.


class _Answered(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NewFact(_Answered):
    text: Annotated[str, _line(2000)]
    importance: Annotated[Literal["low", "medium", "high"], Word]
    tags: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    ttl: Annotated[str | None, BeforeValidator(lambda value: value if isinstance(value, str) else None)] = (
        None
    )
    """How long it holds, as the model wrote it."""


class NewPreference(_Answered):
    """A value for the document. Validation fails if its field does not accept the value."""

    key: Name
    value: Annotated[
        bool
        | int
        | float
        | str
        | Annotated[tuple[Annotated[str, _line(4000, required=False)], ...], Field(max_length=MOST_UPDATES)]
        | None,
        _line(4000, required=False),
    ] = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _read(self, _ANY_TIME)  # raises if it does not fit
        return self


class TaskUpdate(_Answered):
    id: Annotated[Annotated[str, _line(100)] | None, BeforeValidator(bare_id)] = None
    """None or empty: a new task, or the task that the description matches."""
    description: Annotated[str, _line(1000, required=False)] = ""
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


# Entries, and the document that they add up to.


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement about one field."""

    field: str
    """``profile.name``, ``preferences.tone``, ``conversation_themes`` …: one of `FIELDS`."""
    item: str
    """The normalised text of a list item. Empty for single values."""
    value: str
    """The value. Empty deletes it; without an item, empties the whole list."""
    said_at: datetime
    message_id: str | None = None
    """The message in which it was said; `SET_BY_HAND`; None if not known."""


_GROUPS: Mapping[str, type[_Frozen]] = {"profile": Profile, "preferences": Preferences, "": _OtherFields}
_PATHS = {
    name: f"{group}.{name}".lstrip(".") for group, model in _GROUPS.items() for name in model.model_fields
}
FIELDS = tuple(_PATHS.values())
"""The paths of all fields."""

_OTHER_NAMES = {
    "goal": "goals",
    "theme": "conversation_themes",
    "themes": "conversation_themes",
    "conversation_theme": "conversation_themes",
    "note": "other_notes",
    "notes": "other_notes",
    "other_note": "other_notes",
    "bullets": "prefers_bullets",
}


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


_KNOWN_AS = {_squeezed(name): path for name, path in _PATHS.items()}
_KNOWN_AS |= {_squeezed(name): _PATHS[meant] for name, meant in _OTHER_NAMES.items()}


def field_named(name: str) -> str:
    """The path of a field, from its name with or without its group, in any spacing and capitals. Raises
    ValueError, which names the fields."""
    group, _, rest = _squeezed(one_line(name[:200])).rpartition(".")
    found = _KNOWN_AS.get(rest) if group in _GROUPS else None
    if found is None:
        known = ", ".join(path.rpartition(".")[2] for path in FIELDS)
        raise ValueError(f"{_quoted(name)} is no field of the user context; the fields are {known}")
    return found


def entry_for(field: str, value: str, said_at: datetime) -> Entry:
    """The entry for a value that a person sets. An empty value removes the field; for a list, all of its
    items. Raises ValueError in one line that names the valid fields or values."""
    path = field_named(field)
    entry = _entry(path, value, said_at) if one_line(value) else Entry(path, "", "", said_at)
    return replace(entry, message_id=SET_BY_HAND)


def entries_of(preferences: Sequence[NewPreference], said_at: datetime) -> list[Entry]:
    """The entries for updates that were found in an exchange. A null deletes a single value; lists only grow.
    An unknown key becomes a note, ``key: value``."""
    return [entry for preference in preferences for entry in _read(preference, said_at)]


def _read(preference: NewPreference, said_at: datetime) -> list[Entry]:
    given = preference.value if isinstance(preference.value, tuple) else (preference.value,)
    values = [value for value in given if value is not None and value != ""]
    try:
        path = field_named(preference.key)
    except ValueError:
        text = ", ".join(_spelled(value) for value in values)
        return [_entry(_PATHS["other_notes"], f"{preference.key}: {text}", said_at)] if text else []
    if path in MOST:
        return [_entry(path, value, said_at) for value in values]
    if len(values) > 1:
        raise ValueError(f"{path} takes one value, not {len(values)}")
    return [_entry(path, values[0], said_at) if values else Entry(path, "", "", said_at)]


def _entry(path: str, value: Any, said_at: datetime) -> Entry:
    group, _, name = path.rpartition(".")
    try:
        made = _GROUPS[group].model_validate({name: (value,) if path in MOST else value})
    except ValidationError as error:
        raise ValueError(_why(path, value, error)) from None
    kept = getattr(made, name)
    text = _spelled(kept[0] if path in MOST else kept)
    return Entry(path, _folded(text) if path in MOST else "", text, said_at)


def _folded(text: str) -> str:
    """The key that identifies equal list items, in any script."""
    folded = normalise(text) or text
    return folded if len(folded) <= _LONGEST_ITEM else sha256(folded.encode()).hexdigest()


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _why(path: str, value: Any, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if first["type"] == "literal_error":
        return f"{path} is {first['ctx']['expected'].replace(chr(39), '')}, not {_quoted(value)}"
    if first["type"] == "value_error":
        return f"{path}: {_quoted(value)} {first['ctx']['error']}"
    wanted = "yes or no" if "bool" in first["type"] else "a text"
    return f"{path} is {wanted}, not {_quoted(value)}"


def _quoted(value: Any) -> str:
    text = one_line(_spelled(value)[:200])
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


def merged(known: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """The known entries after merging `new`, in a fixed order. The later statement wins; at equal times, the
    later one in the sequence. Entries with different times merge in any order and repeatedly."""
    held = {(entry.field, entry.item): entry for entry in known}
    for entry in new:
        _apply(held, entry)
    kept = [entry for (path, item), entry in held.items() if not (path in MOST and item)]
    for path, most in MOST.items():
        items = [entry for entry in held.values() if entry.field == path and entry.item]
        kept += sorted(items, key=_said, reverse=True)[:most]
    return sorted(kept, key=lambda entry: (entry.field, entry.item))


def _apply(held: dict[tuple[str, str], Entry], entry: Entry) -> None:
    whole, key = (entry.field, ""), (entry.field, entry.item)
    if any(said.said_at > entry.said_at for said in (held.get(whole), held.get(key)) if said):
        return
    held[key] = entry
    if not entry.value and not entry.item:
        for other in [k for k, said in held.items() if k[0] == entry.field and k[1]]:
            if held[other].said_at <= entry.said_at:
                del held[other]


def _said(entry: Entry) -> tuple[datetime, str]:
    return entry.said_at, entry.item


def context_of(
    entries: Iterable[Entry], *, long_term_facts: Sequence[Memory] = (), open_tasks: Sequence[Task] = ()
) -> UserContext:
    """The document that the entries add up to, in whatever order and place they were stated. Skips entries
    that this version cannot read, such as those of a newer one."""
    known = merged((), sorted(entries, key=lambda entry: (entry.said_at, entry.value)))
    values: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
    for entry in sorted(known, key=_said, reverse=True):
        group, _, name = entry.field.rpartition(".")
        if not entry.value or group not in values:
            continue
        if entry.field in MOST:
            values[group].setdefault(name, []).append(entry.value)
        else:
            values[group][name] = entry.value
    other = _made(_OtherFields, values[""])
    return UserContext(
        profile=_made(Profile, values["profile"]),
        preferences=_made(Preferences, values["preferences"]),
        long_term_facts=tuple(long_term_facts),
        open_tasks=tuple(open_tasks),
        conversation_themes=other.conversation_themes,
        memory_summary=other.memory_summary,
        last_updated=max((entry.said_at for entry in known), default=None),
    )


def _made(model: type[Group], values: dict[str, Any]) -> Group:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        unread = {fault["loc"][0] for fault in error.errors()}
        return model.model_validate({name: value for name, value in values.items() if name not in unread})
