"""Reads the memories that a model wrote as ``memories``.

Models rename keys, and write one memory instead of a list or a bare sentence instead of an object.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import get_args

from agent.models.json_repair import CutText, Fields, objects_in
from agent.turn.output.cleaning import trimmed
from memory.records import DEFAULT_IMPORTANCE, Draft, MemoryType
from memory.text import readable

MOST_SUBJECTS = 64

_CONTENTS = tuple("content fact text memory statement description summary note insight preference".split())
_SUBJECTS = tuple("subjects subject tags topics entities keywords about".split())
_TTLS = tuple("ttl timetolive expiresin expires expiry duration lifetime validfor".split())
_TYPES = tuple("type kind category memorytype".split())
_IMPORTANCES = tuple("importance priority weight salience".split())
_REPLACES = tuple("replaces replace supersedes replacesid".split())
ATTRIBUTES = frozenset((*_SUBJECTS, *_TTLS, *_TYPES, *_IMPORTANCES))
_VALUE_STARTS = re.compile(r"\s*+(?:\{|\[\s*[\[{\"'])")
_NOTHING = frozenset("none null nil ~ nan n/a na undefined nothing empty".split())
_NOTHING |= {"", "no memories", "no new memories"}


def drafts_in(value: object) -> tuple[Draft, ...]:
    """Return the memories in a `memories` value, each content once, in order. Skips anything unreadable."""
    drafts: dict[str, Draft] = {}
    for entry in _entries(value):
        if draft := draft_in(entry):
            drafts.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(drafts.values())


def named(value: Mapping[str, object]) -> Fields:
    """Return the fields with names in lower case and without punctuation. Lists of one name are joined."""
    fields = Fields()
    fields.cut = isinstance(value, Fields) and value.cut
    for key, item in value.items():
        fields.put(name_of(key), list(item) if isinstance(item, list) else item)
    return fields


def name_of(key: str) -> str:
    return "".join(filter(str.isalnum, key.casefold()))


def first(fields: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def value_in(text: str) -> object:
    """Parse the object or list in a string, if it holds one, as in an envelope encoded twice."""
    if _VALUE_STARTS.match(text) is None or isinstance(text, CutText):
        return None
    wrapped = next(objects_in('{"value": ' + text + "}"), None)
    value = wrapped.value.get("value") if wrapped else None
    return value if isinstance(value, list | Fields) and value else None


def _entries(value: object) -> Iterator[object]:
    """Yield each memory, written as an object or a sentence, at any depth."""
    if isinstance(value, str):
        value = value_in(value) or value
    if isinstance(value, list):
        for item in value:
            yield from _entries(item)
    elif isinstance(value, str) or (isinstance(value, Mapping) and isinstance(_text_of(named(value)), str)):
        yield value
    elif isinstance(value, Mapping) and ATTRIBUTES.isdisjoint(
        named(value)
    ):  # the memories are grouped or numbered by key
        for item in value.values():
            if isinstance(item, list | Mapping):
                yield from _entries(item)


def _text_of(fields: Fields) -> object:
    return first(fields, _CONTENTS)


def draft_in(entry: object) -> Draft | None:
    """Read one memory. Returns None if it has no content, or was cut before its lifetime."""
    fields = named(entry) if isinstance(entry, Mapping) else Fields(content=entry)
    content, ttl = _content(_text_of(fields)), first(fields, _TTLS)
    if content is None or (fields.cut and (isinstance(ttl, CutText) or fields.keys().isdisjoint(_TTLS))):
        return None
    return Draft(
        content=content,
        subjects=_subjects(first(fields, _SUBJECTS)),
        ttl=_word(ttl),
        type=_type(first(fields, _TYPES)),
        importance=_importance(first(fields, _IMPORTANCES)),
        replaces=_word(first(fields, _REPLACES)),
    )


def _content(value: object) -> str | None:
    if not isinstance(value, str) or isinstance(value, CutText):
        return None
    text = trimmed(readable(value))
    blank = text.casefold().strip(".") in _NOTHING or not any(map(str.isalnum, text))
    return None if blank else text


def _subjects(value: object) -> tuple[str, ...]:
    """Return flat tags in lower case, each once."""
    words = value.split(",") if isinstance(value, str) else _strings(value)
    tags = (trimmed(readable(word)).strip("#").casefold() for word in words)
    return tuple(dict.fromkeys(tag for tag in tags if tag not in _NOTHING))[:MOST_SUBJECTS]


def _strings(value: object) -> Iterator[str]:
    """Yield the strings of a list and of nested lists, except one that was cut."""
    if isinstance(value, str) and not isinstance(value, CutText):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _word(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = trimmed(readable(str(value)))
    return None if text.casefold() in _NOTHING else text


def _type(value: object) -> MemoryType:
    word = str(value).strip().casefold().removesuffix("s")
    return next((known for known in get_args(MemoryType) if known == word), "fact")


def _importance(value: object) -> float:
    """Return a number between 0 and 1; the default for a negative number or anything else."""
    try:
        number = float(str(value).strip().replace(",", "."))
    except ValueError:
        return DEFAULT_IMPORTANCE
    return min(1.0, number) if math.isfinite(number) and number >= 0 else DEFAULT_IMPORTANCE
