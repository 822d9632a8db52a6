"""Read the JSON in what a model wrote: strictly where it is whole, else as json-repair mends it."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import json_repair
from pydantic_core import from_json

MOST_MARKS = 100_000_000
"""Characters times marks that are repaired in one text, at most three seconds: json-repair is quadratic where
a text is nothing but quotes or braces. Of a longer text the first 2,000 characters are."""
_STARTS = re.compile(
    r"\{(?=\s*+(?:[\"'`\\}/]|[A-Za-z_]\w{0,40}\s*+:))|\[(?=\s*+[\[{\"'])"
    r"|[\"'](?=(?:message|memories)[\"']\s*+:)",
    re.IGNORECASE,
)
"""Where an object or a list begins, or the first key of an object whose brace is missing."""
_FLAT = re.compile(r'(?=(\{\s*+(?=")(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}))', re.DOTALL)
"""An object without others in it."""
_NESTED = re.compile(r"(?:[\[{][^\[\]{}]{0,20}){50}")
"""What json-repair fails at, after long."""
_MARKS = re.compile(r"[\"'{}\[\]]")
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FOREIGN = re.compile(r"[{｛][\s\[［]*[“”„«»＂「『″]|[\"”＂]\s*[：﹕]")
_IN_ASCII = str.maketrans("｛｝［］【】：﹕，﹐、“”„＂″「」『』«»", "{}[][]::,,," + '"' * 11)
CUT = "\uffff"
"""Stands after the last character of a text that is mended, so that the string that it ends in is known."""


class JsonValue(NamedTuple):
    """An object or a list in a text, and its position."""

    value: Any
    start: int
    end: int
    whole: bool = True
    """Whether it is neither cut nor damaged."""


def objects_in(text: str) -> list[JsonValue]:
    """Return the successive objects and lists in a text. Behind a damaged one all is read as one text."""
    text = text.translate(_IN_ASCII) if _FOREIGN.search(text) else text
    found, at = list[JsonValue](), 0
    while opened := _STARTS.search(text, at):
        start, value = opened.start(), None
        with suppress(ValueError, RecursionError):
            value, at = _WHOLE.raw_decode(text, start)
        if not isinstance(value, dict | list):
            end = text.rfind("}") + 1 or len(text)
            mended = (*_mended(text[start:]), *_flat(text[start:]))
            return found + [JsonValue(one, start, end, whole=False) for one in mended]
        found.append(JsonValue(value, start, at))
    return found


def object_with(text: str, *keys: str) -> dict[str, Any] | None:
    """Return the first object in `text` that has one of `keys`; None if none has, or if the text is cut."""
    values = [one.value for one in objects_in(text)] if up_to_the_last_end(text)[1] else []
    return next((one for one in values if isinstance(one, dict) and not one.keys().isdisjoint(keys)), None)


def up_to_the_last_end(text: str) -> tuple[str, bool]:
    """Return a text up to the end of its last object that ends, and whether nothing is open behind it."""
    last, depth = 0, 0
    for mark in _STRUCTURE.finditer(text, max(text.find("{"), 0)):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        last = mark.end() if mark[0] == "}" else last
    return text[:last], depth <= 0


def simple_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by their names in lower case without punctuation; lists of equal names joined."""
    return _joined(("".join(filter(str.isalnum, name.casefold())), item) for name, item in value.items())


def items(value: Any) -> list[Any]:
    """Return a list as it is, None as an empty one, and any other value as the only item of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _mended(text: str) -> list[Any]:
    """Return the objects and lists in a text that is cut or damaged."""
    if (begun := _begun(text)) is not None:
        return [begun]
    if len(text) * len(_MARKS.findall(text)) > MOST_MARKS:
        text = text[:2000]
    if _NESTED.search(text):
        return []
    with suppress(ValueError, RecursionError):
        brace = "{" if text[0] in "\"'" else ""
        value = json_repair.loads(brace + _HALF_ESCAPE.sub("", text) + CUT, skip_json_loads=True)
        values = value if isinstance(value, list) and text[0] != "[" else [value]
        return [one for one in values if isinstance(one, dict | list) and one]
    return []


def _begun(text: str) -> dict[str, Any] | list[Any] | None:
    """Return what a text that is cut, and not damaged, was to be. The string in which it ends counts if it is
    a field of the outermost object: a message."""
    try:
        from_json(text)
    except ValueError as error:
        if not str(error).startswith("EOF"):
            return None
    whole, begun = from_json(text, allow_partial=True), from_json(text, allow_partial="trailing-strings")
    if isinstance(whole, dict):
        return whole | {name: value for name, value in begun.items() if isinstance(value, str)}
    return whole if isinstance(whole, list) else None


def _flat(text: str) -> Iterable[dict[str, Any]]:
    """Yield the objects without others in them that a damaged text holds whole: one stray mark loses none."""
    for flat in _FLAT.finditer(text):
        with suppress(ValueError):
            if "message" not in (fields := _WHOLE.decode(flat[1])):
                yield fields


def _joined(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return fields in which lists and objects of one name are one list; else the last value counts."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        before = fields.get(name)
        if isinstance(before, list | dict) and value is not None:
            fields[name] = [*items(before), *items(value)]
        elif before is None or value is not None:
            fields[name] = value
    return fields


_WHOLE = json.JSONDecoder(strict=False, object_pairs_hook=_joined)
