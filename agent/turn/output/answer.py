"""The answer as a pydantic model: the schema that is requested, and every form in which models write it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from agent.models.ask import OPTIONAL, RequestedSchema, list_of, short_text, strict_object
from agent.models.json_objects import CUT, objects_in, simple_keys
from agent.types.client import LONGEST_DESCRIPTION
from memory.records import DEFAULT_IMPORTANCE, MemoryType, NewMemory
from memory.text import readable

MOST_FORGET, MOST_SUBJECTS, LONGEST_SUBJECT = 8, 64, 40
"""Limits of requests to forget, tags of a memory, and characters of a tag: a longer one is a sentence."""
EDGES = " \t\r\n\f\v\u200b\u2060\ufeff"
"""Blank and invisible characters."""
_NOTHING = frozenset("none null nil ~ nan n/a na undefined nothing empty - – —".split())
_NOTHING |= {"", "no memories", "no new memories"}
_NO_SENTENCES = frozenset(
    "thought thoughts thinking reasoning analysis plan mood tone role name parameters arguments".split()
)


def _named(names: str, default: Any = ...) -> Any:
    """Return a field that models write under any of these names, spelt as `simple_keys` returns them."""
    return Field(default, validation_alias=AliasChoices(*names.split()))


def text_of(value: object) -> str | None:
    """Return a text or number as text; None if it is blank, a word for "nothing", or cut off."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or CUT in str(value):
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
    words = value.split(",") if isinstance(value, str) else _items_of(value)
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


class WrittenMemory(BaseModel):
    """One memory. A wrong value is replaced by its default, except in `content`."""

    content: Annotated[str, BeforeValidator(_content)] = _named(
        "content fact text memory statement description summary note insight"
    )
    subjects: Annotated[tuple[str, ...], BeforeValidator(_subjects)] = _named(
        "subjects subject tags topics entities keywords about", ()
    )
    ttl: Annotated[str | None, BeforeValidator(text_of)] = _named(
        "ttl timetolive expiresin expires expiry duration lifetime validfor", None
    )
    type: Annotated[MemoryType, BeforeValidator(_type)] = _named("type kind category memorytype", "fact")
    importance: Annotated[float, BeforeValidator(_importance)] = _named(
        "importance priority weight", DEFAULT_IMPORTANCE
    )
    replaces: Annotated[str | None, BeforeValidator(text_of)] = _named("replaces replace supersedes", None)


def _items_of(value: object) -> Iterator[object]:
    """Yield the items of a list and of the lists in it; any other value itself."""
    if not isinstance(value, list | tuple):
        yield value
        return
    for item in value:
        yield from _items_of(item)


def _new_memories(value: object) -> Iterator[NewMemory]:
    for item in _items_of(value):
        if isinstance(item, NewMemory):
            yield item
        elif isinstance(item, str) and item.lstrip()[:1] in ("{", "[") and (inner := objects_in(item)):
            yield from _new_memories([one.value for one in inner])
        else:
            fields = simple_keys(item) if isinstance(item, Mapping) else {"content": item}
            try:
                yield NewMemory(**WrittenMemory.model_validate(fields).model_dump())
            except ValidationError:
                if fields.keys().isdisjoint({"content", "subjects", "ttl"}):  # grouped or numbered by key
                    yield from _new_memories(
                        [one for one in fields.values() if isinstance(one, list | Mapping)]
                    )


def new_memories_in(value: object) -> tuple[NewMemory, ...]:
    """Return the memories in a `memories` value, each content once, in order; skip those without content."""
    first: dict[str, NewMemory] = {}
    for draft in _new_memories(value):
        first.setdefault(" ".join(draft.content.casefold().split()), draft)
    return tuple(first.values())


def _message(value: object) -> str:
    """Return a message that was written as a string, a number, lines, or an object of a chat API."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_message, value)))
    if isinstance(value, Mapping):
        texts = [one for one in value.values() if isinstance(one, str)]
        return max(sentences_in(texts), key=len, default="")
    return "" if value is None or isinstance(value, bool) else str(value)


def _description(value: object) -> str:
    """Return a description that was written as a string, or in parts."""
    return "; ".join(filter(None, map(text_of, _items_of(value))))


def _requests(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(draft.content for draft in new_memories_in(value)))[:MOST_FORGET]


@dataclass(frozen=True, slots=True)
class Answer:
    """The message for the user, the memories to store, requests to forget in a sentence each, and a line on
    what the pictures show. Nothing is forgotten until the person confirms."""

    message: Annotated[str, BeforeValidator(_message)] = _named(
        "message reply response answer msg finalanswer finalreply finalresponse", ""
    )
    memories: Annotated[tuple[NewMemory, ...], BeforeValidator(new_memories_in)] = _named(
        "memories memory newmemories memoriestostore facts newfacts", ()
    )
    forget: Annotated[tuple[str, ...], BeforeValidator(_requests)] = _named("forget", ())
    seen: Annotated[str, BeforeValidator(_description)] = _named(
        "seen picture pictures image images imagedescription picturedescription", ""
    )


_FIELDS = {
    "message": short_text(1_200, "What the user sees."),
    "memories": list_of(
        3,
        strict_object(
            content=short_text(160, "One fact, understood on its own."),
            subjects=list_of(
                4, short_text(LONGEST_SUBJECT), "Flat lower-case tags: who and what it is about."
            ),
            ttl=short_text(10, "How long it holds: 1h, 1d, 7d, 30d, 2w. null is for ever.") | OPTIONAL,
            type={"enum": [*get_args(MemoryType)], "type": "string"},
            importance={"type": "number", "description": "0.0 to 1.0."},
            replaces=short_text(36, "The id of the memory that this one corrects.") | OPTIONAL,
        ),
        "New facts worth keeping about the user and the people around them. Often empty.",
    ),
    "forget": list_of(
        2,
        short_text(160),
        "What the user asks to forget, one sentence each, in the words they told it in. Nearly always empty.",
    ),
}
ANSWER_SCHEMA = RequestedSchema("answer", strict_object(**_FIELDS))
_SEEN = short_text(LONGEST_DESCRIPTION, "One line: what the pictures show.")
PICTURE_SCHEMA = RequestedSchema("answer", strict_object(**_FIELDS, seen=_SEEN))
"""The schema of an answer to a message with pictures."""
ANSWER = TypeAdapter(Answer)


def sentences_in(value: object) -> Iterator[str]:
    """Yield the texts in a value that may be the message to the user."""
    if isinstance(value, str) and (" " in value.strip() or value.rstrip().endswith((".", "!", "?", "…"))):
        yield readable(value).strip(EDGES)
    if isinstance(value, Mapping):
        value = [item for name, item in simple_keys(value).items() if name not in _NO_SENTENCES]
    for item in value if isinstance(value, list) else ():
        yield from sentences_in(item)


def answer_in(value: object, *, wrapped: bool = False) -> Answer | None:
    """Return the answer that a value is or wraps, also as JSON in a string; None for other data."""
    if isinstance(value, str):
        objects = objects_in(value)
        around = value[: objects[0].start] + value[objects[-1].end :] if objects else value
        value = [] if around.strip(EDGES + "{}[]") else [one.value for one in objects]
    if isinstance(value, list):
        parts = [part for item in value if (part := answer_in(item, wrapped=wrapped))]
        return joined(parts) if parts else None
    if not isinstance(value, Mapping):
        return None
    fields = simple_keys(value)
    named, signs = "memories" in fields, fields.keys() & {"subjects", "ttl", "importance"}
    if signs and not named and "message" not in fields and (drafts := new_memories_in([value])):
        return Answer("", drafts)
    written = ANSWER.validate_python(fields)
    message = fields.get("message")
    inside, deep = (message, False) if named or isinstance(message, str) else ([*fields.values()], True)
    inner = answer_in(inside, wrapped=deep)
    if inner and (inner.message or inner.memories):
        written = joined([replace(written, message="") if named else written, inner])
        named = True
    if named and not written.message:
        beside = [one for one in fields.values() if isinstance(one, str)]
        written = replace(written, message=next(sentences_in(beside), ""))
    return written if named or (written.message and not wrapped) else None


def joined(parts: Sequence[Answer]) -> Answer:
    """Return successive answers as one: the last message, and the memories of all."""
    return Answer(
        next((part.message for part in reversed(parts) if part.message), ""),
        new_memories_in([part.memories for part in parts]),
        tuple(text for part in parts for text in part.forget),
        next((part.seen for part in reversed(parts) if part.seen), ""),
    )
