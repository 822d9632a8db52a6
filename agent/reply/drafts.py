"""The memories in what a model wrote as ``memories``.

Models rename keys, write one memory where a list belongs, or a bare sentence where an object does.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import get_args

from pydantic_core import from_json

from agent.reply.noise import readable, trimmed
from agent.reply.repair import CutText, Fields, objects_in
from memory.records import DEFAULT_IMPORTANCE, Draft, MemoryType

DEEPEST = 5
"""How many lists and groups are looked through."""
MOST_SUBJECTS = 64
MOST_MEMORIES = 5000
"""More than any answer has room for; what comes after is not read."""

_CONTENTS = (
    "content",
    "fact",
    "text",
    "memory",
    "statement",
    "description",
    "summary",
    "note",
    "insight",
    "preference",
)
_SUBJECTS = ("subjects", "subject", "tags", "topics", "entities", "keywords", "about")
_TTLS = ("ttl", "timetolive", "expiresin", "expires", "expiry", "duration", "lifetime", "validfor")
_TYPES = ("type", "kind", "category", "memorytype")
_IMPORTANCES = ("importance", "priority", "weight", "salience")
_REPLACES = ("replaces", "replace", "supersedes", "replacesid")
ATTRIBUTES = frozenset((*_SUBJECTS, *_TTLS, *_TYPES, *_IMPORTANCES))

_NOTHING = frozenset(
    (
        "none",
        "null",
        "nil",
        "nan",
        "n/a",
        "na",
        "undefined",
        "nothing",
        "empty",
        "no memories",
        "no new memories",
    )
)


def drafts_in(value: object) -> tuple[Draft, ...]:
    """The memories in what was written as `memories`, each content once, in order. Junk is passed over."""
    drafts: dict[str, Draft] = {}
    for entry in islice(_entries(value, 0), MOST_MEMORIES):
        draft = draft_in(entry)
        if draft is not None:
            drafts.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(drafts.values())


def named(value: Mapping[str, object]) -> dict[str, object]:
    """The fields by name, in lower case and without punctuation; lists of one name are one list."""
    fields: dict[str, object] = {}
    for key, item in value.items():
        name = name_of(key)
        before = fields.get(name)
        both_lists = isinstance(before, list) and isinstance(item, list)
        fields[name] = [*before, *item] if both_lists else item if before is None else before  # type: ignore[misc]
    return fields


def name_of(key: str) -> str:
    return "".join(filter(str.isalnum, key.casefold()))


def first(fields: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def value_in(text: str) -> object:
    """The object or list that a string holds, if it holds one; an envelope encoded twice."""
    inside = text.strip()
    if not inside.startswith(("{", "[")) or isinstance(text, CutText):
        return None
    try:
        value: object = from_json(inside)
    except ValueError:
        value = next((found.value for found in objects_in(inside, lambda _: True)), None)
    return value


def _entries(value: object, depth: int) -> Iterator[object]:
    """Each memory, written as an object or as a sentence, however deep it lies."""
    if depth > DEEPEST or isinstance(value, CutText):
        return
    if isinstance(value, str):
        decoded = value_in(value)
        if decoded is None:
            yield value
        else:
            yield from _entries(decoded, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item, depth + 1)
    elif isinstance(value, Mapping):
        fields = named(value)
        if any(isinstance(fields.get(name), str) for name in _CONTENTS):
            yield value
        elif ATTRIBUTES.isdisjoint(fields):  # memories grouped or numbered by key
            for item in value.values():
                if isinstance(item, list | Mapping):
                    yield from _entries(item, depth + 1)


def draft_in(entry: object) -> Draft | None:
    """The memory an entry says; None where it says nothing or was cut before it said how long it holds."""
    if isinstance(entry, str):
        content = _content(entry)
        return Draft(content) if content else None
    if not isinstance(entry, Mapping):
        return None
    fields = named(entry)
    content = _content(first(fields, _CONTENTS))
    ttl = first(fields, _TTLS)
    if isinstance(entry, Fields) and entry.cut:
        unfinished = isinstance(ttl, CutText) or not any(name in fields for name in _TTLS)
        content = None if unfinished else content
    if content is None:
        return None
    return Draft(
        content=content,
        subjects=_subjects(first(fields, _SUBJECTS)),
        ttl=_ttl(ttl),
        type=_type(first(fields, _TYPES)),
        importance=_importance(first(fields, _IMPORTANCES)),
        replaces=_identifier(first(fields, _REPLACES)),
    )


def _content(value: object) -> str | None:
    if not isinstance(value, str) or isinstance(value, CutText):
        return None
    text = trimmed(readable(value))
    blank = text.casefold().strip(".") in _NOTHING or not any(map(str.isalnum, text))
    return None if blank else text


def _subjects(value: object) -> tuple[str, ...]:
    """Flat tags in lower case, each once."""
    words = value.split(",") if isinstance(value, str) else list(_strings(value, 0))
    tags = (trimmed(readable(word)).strip("#").casefold() for word in words)
    return tuple(dict.fromkeys(tag for tag in tags if tag and tag not in _NOTHING))[:MOST_SUBJECTS]


def _strings(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str) and not isinstance(value, CutText):
        yield value
    elif isinstance(value, list) and depth < DEEPEST:
        for item in value:
            yield from _strings(item, depth + 1)


def _ttl(value: object) -> str | None:
    if isinstance(value, Mapping):  # {"days": 7}
        value = " ".join(f"{count} {unit}" for unit, count in value.items() if isinstance(count, int))
    return _identifier(value)


def _identifier(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = trimmed(readable(str(value)))
    return None if text.casefold() in _NOTHING or not text else text


def _type(value: object) -> MemoryType:
    word = value.strip().casefold().removesuffix("s") if isinstance(value, str) else ""
    return next((known for known in get_args(MemoryType) if known == word), "fact")


def _importance(value: object) -> float:
    """Within 0 to 1; the usual importance where there is no number, or one below 0, which says nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return DEFAULT_IMPORTANCE
    try:
        number = float(value.strip().replace(",", ".")) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        return DEFAULT_IMPORTANCE
    return min(1.0, number) if math.isfinite(number) and number >= 0 else DEFAULT_IMPORTANCE
