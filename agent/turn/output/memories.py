"""Reads the memories that a model wrote: renamed keys, one memory instead of a list, bare sentences."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, get_args

from agent.models.json_objects import CutText, Fields, objects_in
from memory.records import DEFAULT_IMPORTANCE, Draft, MemoryType
from memory.text import readable

MOST_SUBJECTS = 64
EDGES = " \t\r\n\f\v\u200b\u2060\ufeff"

_KEYS = {
    "content": "content fact text memory statement description summary note insight".split(),
    "subjects": "subjects subject tags topics entities keywords about".split(),
    "ttl": "ttl timetolive expiresin expires expiry duration lifetime validfor".split(),
    "type": "type kind category memorytype".split(),
    "importance": "importance priority weight salience".split(),
    "replaces": "replaces replace supersedes replacesid".split(),
}
"""How models name each field of a memory, the first that is there counts."""
_ATTRIBUTES = frozenset("subjects ttl type importance".split())
_PARTS = ("text", "output_text", "string")
"""Types of the parts of a message and of a schema, which are no memories."""
_NOTHING = frozenset("none null nil ~ nan n/a na undefined nothing empty".split())
_NOTHING |= {"", "-", "–", "—", "no memories", "no new memories"}


def drafts_in(value: object) -> tuple[Draft, ...]:
    """Return the memories in a `memories` value, each content once, in order. Skips anything unreadable."""
    drafts: dict[str, Draft] = {}
    for entry in _entries(value):
        if draft := _draft(entry):
            drafts.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(drafts.values())


def is_memory(value: object) -> bool:
    """Return whether an object has content and something that only memories have."""
    fields = _fields_of(value) if isinstance(value, Mapping) else {}
    return not _ATTRIBUTES.isdisjoint(fields) and _draft(value) is not None


def items_of(value: object) -> Iterator[object]:
    """Yield the items of a list and of the lists in it; any other value itself."""
    if isinstance(value, list):
        for item in value:
            yield from items_of(item)
    else:
        yield value


def trimmed(text: str) -> str:
    """Return the text without leading and trailing blank or invisible characters."""
    return text.strip(EDGES)


def _entries(value: object) -> Iterator[object]:
    """Yield each memory, written as an object or a sentence, at any depth."""
    for item in items_of(value):
        fields = _fields_of(item) if isinstance(item, Mapping) else {}
        if isinstance(item, str) and item.lstrip()[:1] in ("{", "[") and (inner := [*objects_in(item)]):
            yield from _entries([one.value for one in inner])
        elif isinstance(item, str) or isinstance(fields.get("content"), str):
            yield item
        elif isinstance(fields.get("items"), list):  # in the form of a schema
            yield from _entries(fields["items"])
        elif isinstance(item, Mapping) and _ATTRIBUTES.isdisjoint(fields):  # grouped or numbered by key
            yield from _entries([group for group in item.values() if isinstance(group, list | Mapping)])


def _fields_of(entry: Mapping[str, Any]) -> Fields:
    """Return the fields of a memory with the names that we ask for."""
    fields = Fields.named(entry)
    for name, others in _KEYS.items():
        if (value := fields.first(others)) is not None:
            fields[name] = value
    return fields


def _draft(entry: object) -> Draft | None:
    """Read one memory. Returns None if it has no content, or was cut before its lifetime."""
    fields = _fields_of(entry) if isinstance(entry, Mapping) else Fields(content=entry)
    written, ttl = fields.get("content"), fields.get("ttl")
    content = _word(written) if isinstance(written, str) and not isinstance(written, CutText) else None
    if content is None or not any(map(str.isalnum, content)) or fields.get("type") in _PARTS:
        return None
    if fields.cut and (isinstance(ttl, CutText) or "ttl" not in fields):
        return None
    return Draft(
        content=content,
        subjects=_subjects(fields.get("subjects")),
        ttl=_word(ttl),
        type=_type(fields.get("type")),
        importance=_importance(fields.get("importance")),
        replaces=_word(fields.get("replaces")),
    )


def _subjects(value: object) -> tuple[str, ...]:
    """Return flat tags in lower case, each once, except one that was cut."""
    words = value.split(",") if isinstance(value, str) else items_of(value)
    tags = (_word(word) for word in words if isinstance(word, str) and not isinstance(word, CutText))
    return tuple(dict.fromkeys(tag.strip("#").casefold() for tag in tags if tag))[:MOST_SUBJECTS]


def _word(value: object) -> str | None:
    """Return a text or number as text; None if it says nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = trimmed(readable(str(value)))
    return None if text.casefold().strip(".") in _NOTHING else text


def _type(value: object) -> MemoryType:
    word = str(value).strip().casefold().removesuffix("s")
    return next((known for known in get_args(MemoryType) if known == word), "fact")


def _importance(value: object) -> float:
    """Return a number between 0 and 1; the default for a negative number or anything else."""
    with suppress(ValueError):
        number = float(str(value).strip().replace(",", "."))
        if 0 <= number < math.inf:
            return min(1.0, number)
    return DEFAULT_IMPORTANCE
