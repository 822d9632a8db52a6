"""Finds the answer's object ``{"message", "memories", "forget"}`` in a value: with renamed keys, inside
other objects, lists or a function call, or encoded twice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.models.json_objects import Fields, objects_in
from agent.turn.output.memories import drafts_in, is_memory

MESSAGES = tuple("message reply response answer msg finalanswer finalreply finalresponse".split())
OTHER_MESSAGES = (*MESSAGES, *"text content output say utterance assistant final value".split())
_MEMORIES = tuple("memories memory newmemories memoriestostore memorylist facts newfacts".split())
_ASIDES = frozenset(
    "thought thoughts thinking reasoning analysis plan mood emotion tone language lang id".split()
)
_ARGUMENTS = ("arguments", "parameters", "args", "input", "toolinput")
_CALLS = ("name", "tool", "toolname", "function", "functionname", "action", "toolcalls", "functioncall")
_REPLYING = ("reply", "respond", "response", "answer", "message", "say", "final", "output")


@dataclass(slots=True)
class Envelope:
    """What an object says as an answer."""

    message: str | None = None
    memories: list[Any] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    sure: bool = False
    """Whether it names memories, so that it can be nothing else."""
    bare: bool = True
    """Whether it has no keys that an envelope would not have."""

    def add(self, other: "Envelope") -> None:
        """Unite with one that follows: its message, if it has one, and the memories of both."""
        self.message = self.message if other.message is None else other.message
        self.memories += other.memories
        self.forget += other.forget
        self.sure, self.bare = self.sure or other.sure, self.bare and other.bare


def envelope_in(value: object) -> Envelope:
    """Return the envelope that `value` is or wraps; not sure and without a message for data or a call."""
    found = Envelope()
    if isinstance(value, str) and "memories" in value and value.lstrip().startswith(("{", "[")):
        value = [one.value for one in objects_in(value)]
    if isinstance(value, list):
        beside = any(map(is_memory, value))  # one without a lifetime or tags is a memory too
        for item in value:
            inner = envelope_in(item)
            wanted = inner.sure or inner.message is not None or not beside
            found.add(inner if wanted else Envelope(memories=[item], sure=True))
    elif isinstance(value, Mapping):
        fields = Fields.named(value)
        alone = fields.keys().isdisjoint(("message", "memories")) and is_memory(value)
        found = Envelope(memories=[value], sure=True) if alone else _in_object(fields)
    return found


def is_call(value: object) -> bool:
    """Return whether the object calls a tool, or each of a list."""
    if isinstance(value, list):
        return bool(value) and all(map(is_call, value))
    names = Fields.named(value).keys() if isinstance(value, Mapping) else set[str]()
    calls = names & set(_CALLS)
    return bool(calls and names & set(_ARGUMENTS)) or bool(calls & set(_CALLS[-2:]))


def sentences_in(value: object) -> Iterator[str]:
    """Yield the sentences in a value that is no envelope, without its thoughts."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n".join(value)
    if isinstance(value, str) and (" " in value.strip() or value.rstrip().endswith((".", "!", "?", "…"))):
        yield value
    elif isinstance(value, Mapping) and not is_call(value):
        value = [item for name, item in Fields.named(value).items() if name not in _ASIDES]
    for item in value if isinstance(value, list) else ():
        yield from sentences_in(item)


def _in_object(fields: Fields) -> Envelope:
    forget = [draft.content for draft in drafts_in(fields.pop("forget", None))]
    message = fields.first(MESSAGES)
    # Another word for "memories" counts only beside a message.
    name = next((name for name in _MEMORIES if name in fields), "")
    if name and (name == "memories" or isinstance(message, str)):
        memories = [fields.pop(one) for one in _MEMORIES if one in fields]
        said = envelope_in(fields.first(OTHER_MESSAGES))
        if not said.sure:
            said = Envelope(_text(fields.first(OTHER_MESSAGES)) or next(sentences_in(fields), None))
        return Envelope(said.message, [*said.memories, *memories], said.forget + forget, sure=True)
    inner = Envelope(forget=forget)
    for item in fields.values():
        inner.add(envelope_in(item))
    if is_call(fields):  # recognised by its memories, or by the name of the called function
        replies = any(word in str(fields.first(_CALLS)).casefold() for word in _REPLYING)
        return inner if inner.sure or replies else Envelope()
    if isinstance(message, str) and not inner.sure:
        return Envelope(message, forget=forget, bare=_ASIDES.union(MESSAGES).issuperset(fields))
    if inner.sure and inner.message is None:
        inner.message = next(
            sentences_in({name: text for name, text in fields.items() if isinstance(text, str)}), None
        )
    inner.bare = inner.bare and len(fields) == 1
    return inner


def _text(value: object) -> str | None:
    """Return a message that was written as a string, a number, or lines."""
    if isinstance(value, list):
        value = "\n".join(line for line in value if isinstance(line, str))
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) else next(sentences_in(value), None)
