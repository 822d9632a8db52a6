"""Read the JSON in any text of a model: strictly if it is valid, else repaired as far as possible."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import json_repair
from pydantic_core import from_json

LONGEST = 20_000
"""Characters of a damaged text that are repaired: json-repair takes quadratic time for many quotes."""
_STARTS = re.compile(
    r"\{(?=\s*+(?:[\"'`\\}/]|[A-Za-z_]\w{0,40}\s*+:|\Z))|\[(?=\s*+[\[{\"'])"
    r"|[\"'](?=(?:message|memories)[\"']\s*+:)",
    re.IGNORECASE,
)
"""Where an object or a list begins, or the first key of an object whose brace is missing."""
_FLAT = re.compile(r'(?=(\{\s*+(?=")(?!"message)(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}))', re.DOTALL)
"""An object without other objects in it."""
_MESSAGE = re.compile(r'("message"\s{0,9}:\s{0,9}"(?:[^"\\]|\\.)*+")\s{0,9}[,}]', re.DOTALL)
_NESTED = re.compile(r"(?:[\[{][^\[\]{}]{0,20}){50}")
"""Deep nesting, at which json-repair fails after a long time."""
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FOREIGN = re.compile(r"[{｛][\s\[［]*[“”„«»＂「『″]|[\"”＂]\s*[：﹕]")
_IN_ASCII = str.maketrans("｛｝［］【】：﹕，﹐、“”„＂″「」『』«»", "{}[][]::,,," + '"' * 11)
CUT = "\uffff"
"""Added at the end of a text that was cut off, to mark the string in which it ends."""


class JsonValue(NamedTuple):
    """An object or a list in a text, and its position."""

    value: Any
    start: int
    end: int
    whole: bool = True
    """Whether it is neither cut off nor damaged."""


def objects_in(text: str) -> list[JsonValue]:
    """Return the successive objects and lists in a text. From a damaged one on, all is repaired as one
    text."""
    text = text.translate(_IN_ASCII) if _FOREIGN.search(text) else text
    objects, at = list[JsonValue](), 0
    while opened := _STARTS.search(text, at):
        start, value = opened.start(), None
        with suppress(ValueError, RecursionError):
            value, at = _WHOLE.raw_decode(text, start)
        if not isinstance(value, dict | list):
            end = text.rfind("}") + 1 or len(text)
            return objects + [JsonValue(one, start, end, whole=False) for one in _mended(text[start:])]
        objects.append(JsonValue(value, start, at))
    return objects


def object_with(text: str, *keys: str) -> dict[str, Any] | None:
    """Return the first object in `text` that has one of `keys`; None if none has."""
    values = (one.value for one in objects_in(text))
    return next((one for one in values if isinstance(one, dict) and not one.keys().isdisjoint(keys)), None)


def up_to_the_last_end(text: str) -> tuple[str, bool]:
    """Return a text up to the end of its last complete object, and whether all in it is closed."""
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


def _mended(text: str) -> Iterator[Any]:
    """Yield the objects and lists in a text that is cut off or damaged. Leaf objects inside a damaged one
    that are valid by themselves are read, too."""
    text = _HALF_ESCAPE.sub("", text)
    if _ends_early(text):
        in_string = _ends_early(text + CUT)
        yield from_json(text + CUT * in_string, allow_partial="trailing-strings" if in_string else True)
        return
    with suppress(ValueError, RecursionError):
        brace = "{" if text[0] in "\"'" else ""
        deep = _NESTED.search(text)
        value = None if deep else json_repair.loads(brace + text[:LONGEST] + CUT, skip_json_loads=True)
        yield from (
            one for one in items(value if text[0] != "[" else [value]) if isinstance(one, dict | list)
        )
    for part in (*_FLAT.findall(text), *(f"{{{field}}}" for field in _MESSAGE.findall(text))):
        with suppress(ValueError):
            yield _WHOLE.decode(part)


def _ends_early(text: str) -> bool:
    """Return whether the text is an object or list that lacks only its end."""
    try:
        from_json(text)
    except ValueError as error:
        return str(error).startswith("EOF") and text[0] in "{["
    return False


def _joined(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as fields. Lists and objects of one name are joined; of other values the last
    counts."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        before = fields.get(name)
        if isinstance(before, list | dict) and value is not None:
            fields[name] = [*items(before), *items(value)]
        elif before is None or value is not None:
            fields[name] = value
    return fields


_WHOLE = json.JSONDecoder(strict=False, object_pairs_hook=_joined)
