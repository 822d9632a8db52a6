"""From a value that was read to the answer in it: which object is the envelope.

Models rename its keys, wrap it in another object or in a function call, or encode it twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.reply.drafts import ATTRIBUTES, draft_in, first, named, value_in

DEEPEST = 5
"""How many wrappers are looked through."""

MESSAGES = (
    "message",
    "reply",
    "response",
    "answer",
    "msg",
    "réponse",
    "finalanswer",
    "finalreply",
    "finalresponse",
)
_OTHER_MESSAGES = ("text", "content", "output", "say", "utterance", "assistant", "final")
_MEMORIES = (
    "memories",
    "memory",
    "newmemories",
    "memoriestostore",
    "memorylist",
    "facts",
    "newfacts",
    "souvenirs",
)
_ASIDES = frozenset(
    (
        *("thought", "thoughts", "thinking", "reasoning", "analysis", "plan", "followup"),
        *("mood", "emotion", "tone", "sentiment", "language", "lang", "id"),
    )
)
_CALL_ARGUMENTS = ("arguments", "parameters", "args", "input", "toolinput")
CALL_NAMES = ("name", "tool", "toolname", "function", "functionname", "action")
_REPLYING = ("reply", "respond", "response", "answer", "message", "say", "final", "output")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an object says as an answer."""

    message: str | None
    memories: object
    sure: bool
    """It names memories, so it can be nothing else."""
    bare: bool = True
    """It has no keys that an envelope would not have."""


def envelope_in(value: object, depth: int = 0) -> Envelope | None:
    """The envelope that `value` is, or wraps; None where it is other data, or a call of a tool."""
    if isinstance(value, str):
        value = value_in(value)
    if depth > DEEPEST or not value:
        return None
    if isinstance(value, list):
        return _in_list(value, depth)
    return _in_object(value, depth) if isinstance(value, Mapping) else None


def _in_object(value: Mapping[str, object], depth: int) -> Envelope | None:
    fields = named(value)
    if (memories_name := _memories_name(fields)) is not None:
        return _with_memories(fields, memories_name, depth)
    if "content" in fields and len(ATTRIBUTES.intersection(fields)) > 1:  # a memory that stands on its own
        return Envelope(None, [value], sure=True)
    if is_call(value):
        return _in_call(fields, depth)
    inner = [found for item in fields.values() if (found := _in_value(item, depth + 1))]
    if sure := next((found for found in inner if found.sure), None):
        return sure
    message = first(fields, MESSAGES)
    if isinstance(message, str):
        bare = all(name in MESSAGES or name in _ASIDES for name in fields)
        return Envelope(message, None, sure=False, bare=bare)
    return inner[0] if inner and len(fields) == 1 else None


def is_call(value: Mapping[str, object]) -> bool:
    """Whether the object calls a tool."""
    fields = named(value)
    if "toolcalls" in fields or "functioncall" in fields:
        return True
    return any(name in fields for name in CALL_NAMES) and any(name in fields for name in _CALL_ARGUMENTS)


def sentences_in(value: Mapping[str, object]) -> Iterator[str]:
    """The sentences among the values of an object that is no envelope, but not what was thought aside."""
    for name, item in named(value).items():
        if isinstance(item, str) and " " in item.strip() and name not in _ASIDES:
            yield item


def _in_value(item: object, depth: int) -> Envelope | None:
    """As `envelope_in`; a string is only opened where it names memories."""
    if isinstance(item, str) and "memories" not in item:
        return None
    return envelope_in(item, depth) if isinstance(item, str | list | Mapping) else None


def _in_list(items: list[object], depth: int) -> Envelope | None:
    objects = [item for item in items if isinstance(item, Mapping)]
    if any(draft_in(item) and not ATTRIBUTES.isdisjoint(named(item)) for item in objects):
        return Envelope(None, items, sure=True)
    found = [inner for item in objects if (inner := envelope_in(item, depth + 1))]
    return found[-1] if found else None


def _in_call(fields: dict[str, object], depth: int) -> Envelope | None:
    """An envelope given as a call's arguments: by its memories, or by the name of what is called."""
    arguments = first(fields, _CALL_ARGUMENTS)
    inner = envelope_in(arguments, depth + 1) if arguments is not None else None
    if inner is None or inner.sure:
        return inner
    name = str(first(fields, CALL_NAMES)).casefold()
    return inner if any(word in name for word in _REPLYING) else None


def _memories_name(fields: dict[str, object]) -> str | None:
    """The key that holds the memories; another word than ``memories`` only beside a message."""
    names = _MEMORIES if any(isinstance(fields.get(name), str) for name in MESSAGES) else _MEMORIES[:1]
    return next((name for name in names if name in fields), None)


def _with_memories(fields: dict[str, object], memories_name: str, depth: int) -> Envelope:
    memories = fields[memories_name]
    said = first(fields, MESSAGES)
    said = first(fields, _OTHER_MESSAGES) if said is None else said
    inner = _in_value(said, depth + 1)
    if inner is not None and inner.sure:
        return Envelope(inner.message, [inner.memories, memories], sure=True)
    return Envelope(_sentence(said), memories, sure=True)


def _sentence(said: object) -> str | None:
    """The text of a message that may have been written as an object, a list of lines or a number."""
    if isinstance(said, Mapping):
        said = first(named(said), (*MESSAGES, *_OTHER_MESSAGES))
    if isinstance(said, list):
        said = "\n".join(line for line in said if isinstance(line, str))
    if isinstance(said, int | float) and not isinstance(said, bool):
        return str(said)
    return said if isinstance(said, str) else None
