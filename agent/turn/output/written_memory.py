"""Read the memories that a model wrote: renamed keys, one memory in place of a list, bare sentences."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, ValidationError

from agent.models.json_objects import objects_in, simple_keys
from memory.records import DEFAULT_IMPORTANCE, Draft, MemoryType
from memory.text import readable

MOST_SUBJECTS = 64
LONGEST_SUBJECT = 40
"""Characters. A model that writes a longer tag writes a sentence."""
EDGES = " \t\r\n\f\v\u200b\u2060\ufeff"
"""Blank and invisible characters."""
_NOTHING = frozenset("none null nil ~ nan n/a na undefined nothing empty - – —".split())
_NOTHING |= {"", "no memories", "no new memories"}


def text_of(value: object) -> str | None:
    """Return a text or number as text; None if it says nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = readable(str(value)).strip(EDGES)
    return None if text.casefold().strip(".") in _NOTHING else text


def _content(value: object) -> str:
    text = text_of(value) if isinstance(value, str) else None
    if text is None or not any(map(str.isalpha, text)) or text in WrittenMemory.model_fields:
        raise ValueError("it says nothing")
    return text


def _subjects(value: object) -> tuple[str, ...]:
    """Return flat tags in lower case, each once."""
    words = value.split(",") if isinstance(value, str) else items_of(value)
    tags = (text_of(word) for word in words if isinstance(word, str))
    short = (tag.strip("#").casefold() for tag in tags if tag and len(tag) <= LONGEST_SUBJECT)
    return tuple(dict.fromkeys(short))[:MOST_SUBJECTS]


def _type(value: object) -> str:
    word = str(value).strip().casefold().removesuffix("s")
    return word if word in get_args(MemoryType) else "fact"


def _importance(value: object) -> float:
    """Return a number between 0 and 1; the default for a negative number or anything else."""
    with suppress(ValueError):
        number = float(str(value).strip().replace(",", "."))
        if 0 <= number < math.inf:
            return min(1.0, number)
    return DEFAULT_IMPORTANCE


def _names(*names: str) -> Any:
    return Field(None, validation_alias=AliasChoices(*names), validate_default=True)


class WrittenMemory(BaseModel):
    """One memory as models write it, by the keys of `simple_keys`. A wrong value costs that value alone."""

    content: Annotated[str, BeforeValidator(_content)] = _names(
        "content", "fact", "text", "memory", "statement", "description", "summary", "note", "insight"
    )
    subjects: Annotated[tuple[str, ...], BeforeValidator(_subjects)] = _names(
        "subjects", "subject", "tags", "topics", "entities", "keywords", "about"
    )
    ttl: Annotated[str | None, BeforeValidator(text_of)] = _names(
        "ttl", "timetolive", "expiresin", "expires", "expiry", "duration", "lifetime", "validfor"
    )
    type: Annotated[MemoryType, BeforeValidator(_type)] = _names("type", "kind", "category", "memorytype")
    importance: Annotated[float, BeforeValidator(_importance)] = _names("importance", "priority", "weight")
    replaces: Annotated[str | None, BeforeValidator(text_of)] = _names("replaces", "replace", "supersedes")


def drafts_in(value: object) -> tuple[Draft, ...]:
    """Return the memories in a `memories` value, each content once, in order; skip what says nothing."""
    drafts: dict[str, Draft] = {}
    for draft in _drafts(value):
        drafts.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(drafts.values())


def is_memory(value: object) -> bool:
    """Return whether an object has content and something that only memories have."""
    keys = simple_keys(value).keys() if isinstance(value, Mapping) else set[str]()
    return not keys.isdisjoint({"subjects", "ttl", "importance"}) and any(_drafts(value))


def items_of(value: object) -> Iterator[object]:
    """Yield the items of a list and of the lists in it; any other value itself."""
    if isinstance(value, list):
        for item in value:
            yield from items_of(item)
    else:
        yield value


def _drafts(value: object) -> Iterator[Draft]:
    for item in items_of(value):
        if isinstance(item, str) and item.lstrip()[:1] in ("{", "[") and (inner := [*objects_in(item)]):
            yield from _drafts([one.value for one in inner])
            continue
        fields = simple_keys(item) if isinstance(item, Mapping) else {"content": item}
        try:
            yield Draft(**WrittenMemory.model_validate(fields).model_dump())
        except ValidationError:
            if isinstance(item, Mapping) and fields.keys().isdisjoint({"content", "subjects", "ttl"}):
                # grouped or numbered by key
                yield from _drafts([group for group in item.values() if isinstance(group, list | Mapping)])
