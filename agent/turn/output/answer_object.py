"""Finds the object ``{"message", "memories"}`` in a parsed value: with renamed keys, wrapped in another
object or a function call, or encoded twice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.turn.output.memories import ATTRIBUTES, draft_in, first, named, value_in

MESSAGES = tuple("message reply response answer msg réponse finalanswer finalreply finalresponse".split())
MESSAGES += tuple("nachricht antwort mensaje respuesta mensagem resposta risposta".split())
MESSAGES += tuple("сообщение ответ 消息 回复 メッセージ".split())
OTHER_MESSAGES = (*MESSAGES, *"text content output say utterance assistant final value".split())
MEMORIES = tuple("memories memory newmemories memoriestostore memorylist facts newfacts".split())
MEMORIES += tuple(
    "souvenirs mémoires erinnerungen recuerdos memorias memórias ricordi воспоминания 记忆 記憶".split()
)
_ASIDES = frozenset("thought thoughts thinking reasoning analysis plan followup".split())
_ASIDES |= frozenset("mood emotion tone sentiment language lang id".split())
_CALL_ARGUMENTS = tuple("arguments parameters args input toolinput".split())
CALL_NAMES = tuple("name tool toolname function functionname action".split())
_ENDS = tuple(".!?…。！？")
_REPLYING = tuple("reply respond response answer message say final output".split())


@dataclass(frozen=True, slots=True)
class Envelope:
    """An object read as an answer."""

    message: str | None
    memories: object
    sure: bool = True
    """Whether it names memories, so that it can be nothing else."""
    bare: bool = True
    """Whether it has no keys that an envelope would not have."""


def envelope_in(value: object) -> Envelope | None:
    """Return the envelope that `value` is or wraps; None for other data or a tool call."""
    if isinstance(value, str):
        value = value_in(value)
    if isinstance(value, Mapping):
        return _in_object(value)
    objects = [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
    if any(draft_in(item) and not ATTRIBUTES.isdisjoint(named(item)) for item in objects):
        return Envelope(None, value)
    return united([inner for item in objects if (inner := envelope_in(item))])


def united(envelopes: Sequence[Envelope]) -> Envelope | None:
    """Return the envelopes as one: the last message, and all memories. None if there is none."""
    if len(envelopes) < 2:
        return envelopes[0] if envelopes else None
    messages = [one.message for one in envelopes if one.message is not None]
    memories = [one.memories for one in envelopes if one.memories]
    sure, bare = any(one.sure for one in envelopes), all(one.bare for one in envelopes)
    return Envelope(messages[-1] if messages else None, memories, sure, bare)


def is_call(value: Mapping[str, object]) -> bool:
    """Return whether the object calls a tool."""
    names = named(value).keys()
    arguments = not names.isdisjoint(CALL_NAMES) and not names.isdisjoint(_CALL_ARGUMENTS)
    return arguments or "toolcalls" in names or "functioncall" in names


def sentences_in(value: object) -> Iterator[str]:
    """Yield the sentences in a value that is no envelope, without its thoughts."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n".join(value)
    if isinstance(value, str) and (" " in value.strip() or value.rstrip().endswith(_ENDS)):
        yield value
    elif isinstance(value, Mapping) and not is_call(value):
        value = [item for name, item in named(value).items() if name not in _ASIDES]
    for item in value if isinstance(value, list) else ():
        yield from sentences_in(item)


def _in_object(value: Mapping[str, object]) -> Envelope | None:
    fields = named(value)
    # Another word for "memories" counts only beside a message.
    names = MEMORIES if any(isinstance(fields.get(name), str) for name in MESSAGES) else MEMORIES[:1]
    if memories_name := next((name for name in names if name in fields), None):
        return _with_memories(fields, fields[memories_name])
    if "content" in fields and len(ATTRIBUTES.intersection(fields)) > 1:  # a memory outside a list
        return Envelope(None, [value])
    if is_call(fields):  # recognised by its memories, or by the name of the called function
        inner = envelope_in(first(fields, _CALL_ARGUMENTS))
        name = str(first(fields, CALL_NAMES)).casefold()
        return inner if inner and (inner.sure or any(word in name for word in _REPLYING)) else None
    wrapped = [found for item in fields.values() if (found := _in_value(item))]
    if sure := next((found for found in wrapped if found.sure), None):
        return sure
    message = first(fields, MESSAGES)
    if isinstance(message, str):
        return Envelope(message, None, sure=False, bare=_ASIDES.union(MESSAGES).issuperset(fields))
    return wrapped[0] if wrapped and len(fields) == 1 else None


def _in_value(item: object) -> Envelope | None:
    """Return what `envelope_in` does, but parse a string only if it mentions memories."""
    return None if isinstance(item, str) and "memories" not in item else envelope_in(item)


def _with_memories(fields: Mapping[str, object], memories: object) -> Envelope:
    """Build the envelope. The message may be an envelope too, or an object, a list of lines or a number."""
    said = first(fields, OTHER_MESSAGES)
    if (inner := _in_value(said)) and inner.sure:
        return Envelope(inner.message, [inner.memories, memories])
    if isinstance(said, Mapping):
        said = first(named(said), OTHER_MESSAGES)
    if isinstance(said, list):
        said = "\n".join(line for line in said if isinstance(line, str))
    if isinstance(said, int | float) and not isinstance(said, bool):
        said = str(said)
    return Envelope(said if isinstance(said, str) else None, memories)
