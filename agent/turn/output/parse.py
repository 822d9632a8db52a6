"""Parse a model's final answer, ``{"message", "memories", "forget"}``: whole, damaged, or plain text."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import yaml
from pydantic_core import from_json

from agent.models.json_objects import JsonValue, in_ascii, items, objects_in, simple_keys
from agent.turn.output.cleaning import TURN_ENDS, beside_object, cleaned, prose
from agent.turn.output.written_memory import EDGES, drafts_in, is_memory
from memory.records import Draft
from memory.text import readable

# Shown if nothing readable remains of an answer and nothing was found to quote, and if it holds memories but
# no message.
FALLBACK = "Sorry, I lost my words there. Could you say that again?"
FALLBACK_NOTED = "Noted, I will remember that."
MOST_FORGET = 8
NEARBY = 400
"""Characters around an object that tell whether it is the answer or a sample in one."""
_MESSAGES = ("message", "reply", "response", "answer", "msg", "finalanswer", "finalreply", "finalresponse")
_OTHER_MESSAGES = (*_MESSAGES, "text", "content", "output", "utterance", "result", "final", "value")
_MEMORIES = ("memories", "memory", "newmemories", "memoriestostore", "facts", "newfacts")
_ASIDES = {
    "thought",
    "thoughts",
    "thinking",
    "reasoning",
    "analysis",
    "plan",
    "mood",
    "emotion",
    "tone",
    "role",
}
_CALLS = ({"name", "tool", "toolname", "function", "action"}, {"arguments", "parameters", "args", "input"})
_SPILLED = re.compile(r"""["'],?\s{0,99}["']?memories["']\s{0,9}:""")
"""The memories of a message whose end was not recognised."""
_WHOLE_MESSAGE = re.compile(r'"message"\s{0,9}:\s{0,9}("(?:[^"\\]|\\.)*+")\s{0,9}[,}]', re.DOTALL)
_INVISIBLE = re.compile("[\u200b\u2060]")
_SYNTAX = re.compile(r"[\s{}\[\]\"'`,:\\]*+(?:json|null|true|false)?[\s{}\[\]\"'`,:\\]*+")
_JSON_STARTS = re.compile(r"(?:```\w*\s*)?[\"']?[\[{]\s*(?:\\|[\[{\"'`]|\w{1,40}[\"']?\s*:|\Z)")
_OURS = re.compile(r"""["'](?:message|memories|content)["']\s{0,9}:""")
_ENCODED = re.compile(r"""["']?\{\s{0,99}\\+["']""")
"""The beginning of an object that is a JSON string itself."""
_ESCAPED = re.compile(r"""\\(["'\\/])""")
_BEGUN = re.compile(r"""(?:```\w*)?[\s\[\\"']*[{｛]\s*\\*["']\w*\\*["']?[\s:\\"'\[{]*\Z""")
"""An object of which not even the first value was written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The message for the user, never blank, and the memories to store."""

    message: str
    memories: tuple[Draft, ...] = ()
    forget: tuple[str, ...] = ()
    """What the person asked to forget, in a sentence each. Nothing is forgotten until they confirm."""


@dataclass(frozen=True, slots=True)
class _Envelope:
    """What an object says as an answer. One that names memories can be nothing else."""

    message: str | None = None
    memories: tuple[Any, ...] | None = None
    forget: tuple[Any, ...] = ()
    bare: bool = True
    """Whether it has no keys that an answer would not have."""


def parse_answer(raw: str, instead: str = FALLBACK) -> Answer:
    """Parse a model's final output. Never raises: any input gives a readable answer, and one of which nothing
    readable remains the message `instead`."""
    return well_formed(raw) or _read(cleaned(readable(raw)), instead)


def well_formed(raw: str) -> Answer | None:
    """Return the answer if it has exactly the requested form, as nearly always; otherwise None."""
    match _json(raw):
        case {"message": str(message), "memories": list(memories), **rest} if rest.keys() <= {"forget"}:
            shown = readable(message).strip(EDGES)
            # A key that appears twice contributes both lists, and a message may itself be an envelope.
            if shown and not shown.startswith("{") and raw.count('"memories"') == 1:
                return Answer(shown, drafts_in(memories), _requests(rest.get("forget")))
    return None


def _requests(value: object) -> tuple[str, ...]:
    """Return what the person asks to forget, one sentence each."""
    return tuple(dict.fromkeys(draft.content for draft in drafts_in(value)))[:MOST_FORGET]


def _read(text: str, instead: str, depth: int = 0) -> Answer:
    inside = text.partition("\n")[2].removesuffix("```") if text.startswith("```") else text
    encoded = _json(inside.strip(EDGES))
    if depth < 2 and isinstance(encoded, str):
        return _read(cleaned(readable(encoded)), instead, depth + 1)
    if depth < 2 and (opened := _ENCODED.search(text)) and "{" not in text[: opened.start()]:
        return _read(_ESCAPED.sub(r"\1", text), instead, depth + 1)
    text = in_ascii(_INVISIBLE.sub("", text))
    values = [*objects_in(text)] or _yaml(text)
    envelope, around = _chosen(text, values)
    message = readable(envelope.message or "").strip(EDGES)
    inner = message.startswith('{"message"') and message.endswith("}")
    if depth < 2 and message.startswith("{") and (inner or any(one.damage for one in values)):
        message = _read(message, "", depth + 1).message
    memories = drafts_in([*(envelope.memories or ())])
    shown = message or _sentences_of(around, values)
    return Answer(shown or (FALLBACK_NOTED if memories else instead), memories, _requests([*envelope.forget]))


def _chosen(text: str, values: list[JsonValue]) -> tuple[_Envelope, str]:
    """Return the envelope among the values, and the sentences around it. Envelopes in a row are one answer;
    one that follows sentences is a corrected version of the draft before them."""
    parts, used = list[_Envelope](), list[JsonValue]()
    for at, item in enumerate(values):
        before = beside_object(text[used[-1].end if used else 0 : item.start][-NEARBY:])
        beside = used and isinstance(item.value, list) and not before
        envelope = _envelope_in(item.value) or (_Envelope(memories=tuple(item.value)) if beside else None)
        if envelope is None:
            continue
        end = values[at + 1].start if at + 1 < len(values) else len(text)
        after = beside_object(text[item.end : end][:NEARBY])
        if envelope.memories is None and before and (after or not envelope.bare):
            continue  # a sample in the sentences
        if before and envelope.message is not None:
            parts = []
        parts.append(envelope if not item.damage else _mended(envelope, text[item.start :]))
        used.append(item)
    if used:
        return _joined(parts), beside_object(text[: used[0].start]) or beside_object(text[used[-1].end :])
    for item in reversed(values):
        if _is_call(item.value):
            text = text[: item.start] + text[item.end :]
        elif item.damage and _OURS.search(text, item.start):
            text = beside_object(text[: item.start])
    return _Envelope(), prose(text)


def _mended(envelope: _Envelope, text: str) -> _Envelope:
    """Return the envelope of a damaged object with its message where that is written whole, else without what
    stands behind it."""
    if envelope.message is None and (written := _WHOLE_MESSAGE.search(text)):
        return replace(envelope, message=str(_json(written[1]) or "") or None)
    message = TURN_ENDS.split(_SPILLED.split(envelope.message or "", maxsplit=1)[0], maxsplit=1)[0]
    return replace(envelope, message=_without_begun(message) if envelope.message is not None else None)


def _envelope_in(value: object) -> _Envelope | None:
    """Return the envelope that a value is or wraps; None for data and calls of tools."""
    if isinstance(value, str) and _is_envelope(_json(value)):
        value = _json(value)
    if isinstance(value, list):
        parts = [None if is_memory(item) else _envelope_in(item) for item in value]
        memories = tuple(item for item, part in zip(value, parts, strict=True) if part is None)
        parts += [_Envelope(memories=memories)] if any(map(is_memory, value)) else []
        return _joined([part for part in parts if part]) if any(parts) else None
    if not isinstance(value, Mapping):
        return None
    fields = simple_keys(value)
    message = next((fields[name] for name in _MESSAGES if fields.get(name) is not None), None)
    named = [
        name for name in _MEMORIES if name in fields and (name == "memories" or isinstance(message, str))
    ]
    forget = tuple(items(fields.pop("forget", None)))
    if not named:
        if is_memory(value):
            return _Envelope(memories=(value,))
        inner = _envelope_in([*fields.values()]) if not _is_call(value) or "memories" in str(value) else None
        if inner and inner.memories is not None:
            sentences = _strings([item for item in fields.values() if isinstance(item, str)])
            return inner if inner.message else replace(inner, message=next(sentences, None))
        if not isinstance(message, str):
            return inner
        return _Envelope(message, forget=forget, bare=fields.keys() <= {*_MESSAGES, *_ASIDES})
    memories = tuple(item for name in named for item in items(fields.pop(name)))
    if (inner := _envelope_in(message)) and inner.memories is not None:
        return _joined([_Envelope(None, memories, forget), inner])
    return _Envelope(_text(fields) or next(_strings(fields), None), memories, forget)


def _joined(parts: list[_Envelope]) -> _Envelope:
    """Return one envelope: the last message, and the memories of all."""
    named = any(part.memories is not None for part in parts)
    return _Envelope(
        next((part.message for part in reversed(parts) if part.message is not None), None),
        tuple(item for part in parts for item in part.memories or ()) if named else None,
        tuple(item for part in parts for item in part.forget),
        all(part.bare for part in parts),
    )


def _is_call(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_call, value))
    keys = simple_keys(value).keys() if isinstance(value, Mapping) else set[str]()
    return all(not keys.isdisjoint(names) for names in _CALLS)


def _is_envelope(value: object) -> bool:
    return isinstance(value, dict) and {"message", "memories"} <= value.keys()


def _text(value: object) -> str | None:
    """Return a message that was written as a string, a number, lines, or an object of a chat API."""
    if isinstance(value, Mapping):
        fields = simple_keys(value)
        return next((text for name in _OTHER_MESSAGES if (text := _text(fields.get(name)))), None)
    if isinstance(value, list):
        return "\n".join(text for item in value if (text := _text(item))) or None
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _sentences_of(text: str, values: list[JsonValue]) -> str:
    """Return the text of an answer without an envelope, or the longest sentence of an object in its place. A
    fenced object was asked for, and is shown."""
    fenced = text.startswith("```") and text.endswith("```") and len(text) > 6
    if not _JSON_STARTS.match(text) or (fenced and not any(_text(one.value) for one in values)):
        text = _without_begun(text).strip(EDGES)
        return "" if _SYNTAX.fullmatch(text) else text
    sentences = (readable(one).strip(EDGES) for item in values for one in _strings(item.value))
    return max((one for one in sentences if one[:1] not in "{["), key=len, default="")


def _without_begun(text: str) -> str:
    """Return the text without an object at its end that has only begun. Only the last characters are
    searched: each blank or bracket of a whole text could begin one."""
    return text[:-80] + _BEGUN.sub("", text[-80:])


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str) and (" " in value.strip() or value.rstrip().endswith((".", "!", "?", "…"))):
        yield value
    if isinstance(value, Mapping):
        value = [item for name, item in simple_keys(value).items() if name not in _ASIDES]
    for item in value if isinstance(value, list) else ():
        yield from _strings(item)


def _yaml(text: str) -> list[JsonValue]:
    value = None
    if text.startswith("message: "):
        with suppress(yaml.YAMLError, ValueError):
            value = yaml.safe_load(text)
    return [JsonValue(value, 0, len(text))] if isinstance(value, dict) else []


def _json(text: str) -> object:
    with suppress(ValueError, TypeError):
        return from_json(text)
    return None
