"""Merge the entries of a profile, one per statement of a person about themselves, and assemble the document.

Entries are merged, never rewritten: the latest single value wins, lists keep their newest items, and an empty
value deletes the earlier ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from memory.facts.compare import normalise
from memory.people.profile import OtherFields, Part, Preferences, Profile, UserContext
from memory.records import Memory, Task
from memory.text import one_line

MOST: Mapping[str, int] = {"profile.goals": 10, "preferences.other_notes": 20, "conversation_themes": 12}
"""The fields that are lists, and how many of the newest items each keeps."""

_LONGEST_ITEM = 200  # part of a key, whose length PostgreSQL limits

Value = bool | int | float | str | tuple[str, ...] | None
Group = TypeVar("Group", bound=Part)


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
    messages: frozenset[str] = frozenset()
    """The ids of the messages that state it, as far as they are known. An entry set by hand has none."""


_GROUPS: Mapping[str, type[Part]] = {"profile": Profile, "preferences": Preferences, "": OtherFields}
_PATHS = {
    name: f"{group}.{name}".lstrip(".") for group, model in _GROUPS.items() for name in model.model_fields
}
FIELDS = tuple(_PATHS.values())
"""The paths of all fields."""
READ_EVERYWHERE = frozenset(
    {"profile.timezone", *(path for path in FIELDS if path.startswith("preferences."))} - MOST.keys()
)
"""The fields that count in every place: preferences with values of a fixed form, and the time zone."""

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
    """Find a field by its name with or without its group, in any spacing and capitals. Raises ValueError."""
    group, _, rest = _squeezed(one_line(name[:200])).rpartition(".")
    found = _KNOWN_AS.get(rest) if group in _GROUPS else None
    if found is None:
        known = ", ".join(path.rpartition(".")[2] for path in FIELDS)
        raise ValueError(f"{_quoted(name)} is no field of the user context; the fields are {known}")
    return found


def entry_for(field: str, value: str, said_at: datetime) -> Entry:
    """Make the entry for a value that a person sets; an empty one removes the field or the whole list. Raises
    ValueError in one line that names the valid fields or values."""
    path = field_named(field)
    return _entry(path, value, said_at) if one_line(value) else Entry(path, "", "", said_at)


def entries_from_model(key: str, value: Value, said_at: datetime, replaces: str | None = None) -> list[Entry]:
    """Make the entries for a value that a model read in a conversation. None deletes a single value; a list
    grows, and loses the item that the value `replaces`; an unknown key becomes a note. Raises ValueError."""
    values = [one for one in (value if isinstance(value, tuple) else (value,)) if one not in (None, "")]
    try:
        path = field_named(key)
    except ValueError:
        text = ", ".join(_spelled(value) for value in values)
        return [_entry(_PATHS["other_notes"], f"{key}: {text}", said_at)] if text else []
    if path in MOST:
        gone = [Entry(path, _folded(one_line(replaces)), "", said_at)] if replaces else []
        return gone + [_entry(path, value, said_at) for value in values]
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
    """Return the key that identifies equal list items, in any script."""
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


def merged(stored: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """Merge `new` into the stored entries, in any order and repeatedly. The later statement wins; of equal
    times, the later in the sequence."""
    latest = {(entry.field, entry.item): entry for entry in stored}
    for entry in new:
        _apply(latest, entry)
    entries = [entry for (path, item), entry in latest.items() if not (path in MOST and item)]
    for path, most in MOST.items():
        items = [entry for entry in latest.values() if entry.field == path and entry.item]
        entries += sorted(items, key=_said, reverse=True)[:most]
    return sorted(entries, key=lambda entry: (entry.field, entry.item))


def _apply(latest: dict[tuple[str, str], Entry], entry: Entry) -> None:
    whole, key = (entry.field, ""), (entry.field, entry.item)
    if any(said.said_at > entry.said_at for said in (latest.get(whole), latest.get(key)) if said):
        return
    latest[key] = entry
    if not entry.value and not entry.item:
        for other in [k for k, said in latest.items() if k[0] == entry.field and k[1]]:
            if latest[other].said_at <= entry.said_at:
                del latest[other]


def _said(entry: Entry) -> tuple[datetime, str]:
    return entry.said_at, entry.item


def context_of(
    entries: Iterable[Entry], *, long_term_facts: Sequence[Memory] = (), open_tasks: Sequence[Task] = ()
) -> UserContext:
    """Assemble the document from entries in any order. Entries of a newer version are skipped."""
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
    other = _made(OtherFields, values[""])
    return UserContext(
        profile=_made(Profile, values["profile"]),
        preferences=_made(Preferences, values["preferences"]),
        long_term_facts=tuple(long_term_facts),
        open_tasks=tuple(open_tasks),
        conversation_themes=other.conversation_themes,
        memory_summary=other.memory_summary,
        last_updated=max((entry.said_at for entry in known), default=None),
        message_ids=messages_of(known),
    )


def messages_of(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the messages that state the entries, without those of fields in `READ_EVERYWHERE`."""
    return frozenset(
        message
        for entry in entries
        if entry.value and entry.field not in READ_EVERYWHERE
        for message in entry.messages
    )


def _made(model: type[Group], values: dict[str, Any]) -> Group:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        unread = {fault["loc"][0] for fault in error.errors()}
        return model.model_validate({name: value for name, value in values.items() if name not in unread})
