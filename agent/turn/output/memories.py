"""Reads the memories that a model wrote: renamed keys, one memory instead of a list, bare sentences."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import get_args

from agent.models.json_repair import CutText, Fields, objects_in
from agent.turn.output.cleaning import trimmed
from memory.records import DEFAULT_IMPORTANCE, Draft, MemoryType
from memory.text import readable

MOST_SUBJECTS = 64
MOST_FORGET = 8

_CONTENTS = tuple("content fact text memory statement description summary note insight preference".split())
_CONTENTS += tuple("contenu inhalt contenido conteúdo contenuto содержание 内容".split())
_SUBJECTS = tuple("subjects subject tags topics entities keywords about".split())
_TTLS = tuple("ttl timetolive expiresin expires expiry duration lifetime validfor".split())
_TYPES = tuple("type kind category memorytype".split())
_IMPORTANCES = tuple("importance priority weight salience".split())
_REPLACES = tuple("replaces replace supersedes replacesid".split())
_PARTS = ("text", "output_text")
"""Types of the parts of a message, which are no memories."""
ATTRIBUTES = frozenset((*_SUBJECTS, *_TTLS, *_TYPES, *_IMPORTANCES))
_VALUE_STARTS = re.compile(r"\s*+(?:\{|\[\s*[\[{\"'])")
_NOTHING = frozenset("none null nil ~ nan n/a na undefined nothing empty".split())
_NOTHING |= {"", "-", "–", "—", "no memories", "no new memories"}


def drafts_in(value: object) -> tuple[Draft, ...]:
    """Return the memories in a `memories` value, each content once, in order. Skips anything unreadable."""
    drafts: dict[str, Draft] = {}
    for entry in _entries(value):
        if draft := draft_in(entry):
            drafts.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(drafts.values())


def forget_in(value: object) -> tuple[str, ...]:
    """Return the sentences under ``forget`` in the objects, at any depth, each once."""
    found: dict[str, None] = {}
    for item in _items(value):
        for name, inner in named(item).items() if isinstance(item, Mapping) else ():
            texts = [draft.content for draft in drafts_in(inner)] if name == "forget" else forget_in(inner)
            found |= dict.fromkeys(texts)
    return tuple(found)[:MOST_FORGET]


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
    for item in _items(value):
        fields = named(item) if isinstance(item, Mapping) else Fields()
        if isinstance(item, str) and (inner := value_in(item)):
            yield from _entries(inner)
        elif isinstance(item, str) or isinstance(first(fields, _CONTENTS), str):
            yield item
        elif isinstance(fields.get("items"), list):  # in the form of a schema
            yield from _entries(fields["items"])
        elif ATTRIBUTES.isdisjoint(fields):  # the memories are grouped or numbered by key
            groups = item.values() if isinstance(item, Mapping) else ()
            yield from _entries([group for group in groups if isinstance(group, list | Mapping)])


def _items(value: object) -> Iterator[object]:
    """Yield the items of a list and of the lists in it; any other value itself."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    else:
        yield value


def draft_in(entry: object) -> Draft | None:
    """Read one memory. Returns None if it has no content, or was cut before its lifetime."""
    fields = named(entry) if isinstance(entry, Mapping) else Fields(content=entry)
    written, ttl = first(fields, _CONTENTS), first(fields, _TTLS)
    content = _word(written) if isinstance(written, str) and not isinstance(written, CutText) else None
    if content is None or not any(map(str.isalnum, content)) or first(fields, _TYPES) in _PARTS:
        return None
    if fields.cut and (isinstance(ttl, CutText) or fields.keys().isdisjoint(_TTLS)):
        return None
    return Draft(
        content=content,
        subjects=_subjects(first(fields, _SUBJECTS)),
        ttl=_word(ttl),
        type=_type(first(fields, _TYPES)),
        importance=_importance(first(fields, _IMPORTANCES)),
        replaces=_word(first(fields, _REPLACES)),
    )


def _subjects(value: object) -> tuple[str, ...]:
    """Return flat tags in lower case, each once, except one that was cut."""
    words = value.split(",") if isinstance(value, str) else _items(value)
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
