"""Parse the answer of a turn into its message and memories: whole, damaged, or plain text."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from pydantic_core import from_json

from agent.models.json_objects import JsonValue, objects_in
from agent.turn.output.answer import ANSWER, EDGES, Answer, answer_in, joined, new_memories_in, sentences_in
from agent.turn.output.cleaning import beside_object, cleaned, prose
from memory.text import readable

# FALLBACK is shown if an answer has no readable text and there is nothing to quote; FALLBACK_NOTED if it has
# memories but no message.
FALLBACK = "Sorry, I lost my words there. Could you say that again?"
FALLBACK_NOTED = "Noted, I will remember that."
_ENCODED = re.compile(r"""["']?\{\s{0,99}\\+["']""")
"""The beginning of an object inside a JSON string."""
_ESCAPED = re.compile(r"""\\(["'\\/])""")
_OURS = re.compile(r"""["'](?:message|memories|content)["']\s{0,9}:""")
_ENVELOPE = re.compile(r"\{|.{0,9}" + _OURS.pattern)
"""How a message begins that is itself an answer."""
_SPILLED = re.compile(r"""["'],?\s{0,99}["']?memories["']{1,2}\s{0,9}[:\[]""")
"""Where memories begin after a message whose end was not recognised."""
_BEGUN = re.compile(r"\W*+\w*+\W*+")
"""An object that was cut off at its first key."""
_SYNTAX = re.compile(r"[\s{}\[\]\"'`,:\\]*+(?:json|null|true|false)?[\s{}\[\]\"'`,:\\]*+")
_JSON_STARTS = re.compile(r"(?:```\w*\s*)?[\"']?[\[{]\s*(?:\\|[\[{\"'`]|\w{1,40}[\"']?\s*:|\Z)")


def parse_answer(raw: str, instead: str = FALLBACK) -> Answer:
    """Parse a model's final output. Never raises: any input gives a readable answer. If no readable text
    remains, the message is `instead`."""
    return well_formed(raw) or _read(cleaned(readable(raw)), instead)


def well_formed(raw: str) -> Answer | None:
    """Return the answer if it has exactly the requested form, as it nearly always has; else None."""
    match _json(raw):
        case {"message": str(message), "memories": list(), **rest} as fields if rest.keys() <= {
            "forget",
            "seen",
        }:
            answer = ANSWER.validate_python(fields | {"message": readable(message).strip(EDGES)})
            # A key that appears twice contributes both lists, and a message may itself be an envelope.
            if answer.message and not _ENVELOPE.match(answer.message) and raw.count('"memories"') == 1:
                return answer
    return None


def _read(text: str, instead: str) -> Answer:
    encoded = _json(text.partition("\n")[2].removesuffix("```") if text.startswith("```") else text)
    if isinstance(encoded, str):  # JSON inside a JSON string
        text = cleaned(readable(encoded))
    elif (opened := _ENCODED.search(text)) and "{" not in text[: opened.start()]:
        text = _ESCAPED.sub(r"\1", text)
    values = objects_in(text) or _yaml(text)
    answer, around = _chosen(text, values)
    message = answer.message or _sentences_of(around, values)
    if answer.message and not values[-1].whole:
        message = _SPILLED.split(message, maxsplit=1)[0]
        message = _read(message, "").message if message.startswith("{") else message
    message = readable(message).strip(EDGES)
    return replace(answer, message=message or (FALLBACK_NOTED if answer.memories else instead))


def _chosen(text: str, values: Sequence[JsonValue]) -> tuple[Answer, str]:
    """Return the answer among the values, and the sentences around it. Answers in a row are joined. An answer
    after sentences is a correction, and replaces the draft before them."""
    parts, used = list[Answer](), list[JsonValue]()
    for item, then in zip_longest(values, values[1:]):
        before = beside_object(text[used[-1].end if used else 0 : item.start])
        after = beside_object(text[item.end : then.start if then else None])
        part = answer_in(item.value)
        if used and isinstance(item.value, list) and not before:
            part = Answer("", new_memories_in(item.value))
        named = part and (part.memories or "memories" in text[item.start : item.end].casefold())
        if part is None or (before and not named and (after or len(item.value) > 1)):
            continue  # an example within the sentences
        parts = [part] if before and part.message else [*parts, part]
        used.append(item)
    if not used:
        last = values[-1] if values else JsonValue(None, len(text), len(text))
        begun = not last.whole and (_BEGUN.fullmatch(text, last.start) or _OURS.search(text, last.start))
        return Answer(""), (beside_object(text[: last.start]) or text[last.start :]) if begun else text
    return joined(parts), beside_object(text[: used[0].start]) or beside_object(text[used[-1].end :])


def _sentences_of(text: str, values: Sequence[JsonValue]) -> str:
    """Return the text of an answer without an envelope. If it is an object instead, return its longest
    sentence; but a fenced object was requested, and is returned as text."""
    fenced = text.startswith("```") and text.endswith("```") and len(text) > 6
    if fenced or not _JSON_STARTS.match(text):
        text = prose(text)
        return "" if _SYNTAX.fullmatch(text) else text
    texts = (one for item in values for one in sentences_in(item.value))
    return max((one for one in texts if one[:1] not in "{["), key=len, default="")


def _yaml(text: str) -> list[JsonValue]:
    if text.startswith("message: "):
        import yaml

        with suppress(yaml.YAMLError, ValueError):
            if isinstance(value := yaml.safe_load(text), dict):
                return [JsonValue(value, 0, len(text))]
    return []


def _json(text: str) -> Any:
    with suppress(ValueError, TypeError):
        return from_json(text)
    return None
