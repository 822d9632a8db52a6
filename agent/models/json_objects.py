"""Read the JSON objects in what a model wrote: strictly where they are whole, else as json-repair mends them.

A string in which the text ends is left out, except that of a `message`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import json_repair

from memory.text import without_surrogates

MOST_MARKS = 100_000_000
"""Characters times marks that are repaired in one text, at most three seconds: json-repair is quadratic where
a text is nothing but quotes or braces. Of a longer text the first 2,000 characters are."""
MOST_OBJECTS = 1000
_CUT = "\uffff"
"""Stands after the last character while a text is repaired, so that the string that it ends in is known."""
_STARTS = re.compile(
    r"\{(?=\s*+(?:[\"'`“”„\\}/]|[A-Za-z_]\w{0,40}\s*+:))|\[(?=\s*+[\[{\"'“])"
    r"|[\"'](?=(?:message|memories)[\"']\s*+:)",
    re.IGNORECASE,
)
"""Where an object or a list begins, or the first key of an object whose brace is missing."""
_FLAT = re.compile(r'(?=(\{\s*+(?=")(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}))', re.DOTALL)
"""An object without others in it."""
_MARKS = re.compile(r"[\"'{}\[\]]")
_MEMORIES = re.compile(r"""(["'])memories\1(?=\s*+:)""", re.IGNORECASE)
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}\[\],]', re.DOTALL)
_KEY_BEGUN = re.compile(r',?\s*+"(?:[^"\\]|\\.)*+"?\s*+:?\s*+\w*+', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FOREIGN = re.compile(r"[{｛][\s\[［]*[“”„«»＂「『″]|[\"”＂]\s*[：﹕]")
_IN_ASCII = str.maketrans("｛｝［］【】：﹕，﹐、“”„＂″「」『』«»", "{}[][]::,,," + '"' * 11)


class JsonValue(NamedTuple):
    """An object or a list in a text, and its position."""

    value: dict[str, Any] | list[Any]
    start: int
    end: int
    damage: Literal["", "mended", "cut"] = ""
    """Cut if the text ends in it."""


def objects_in(text: str) -> Iterator[JsonValue]:
    """Yield the successive objects and lists in a text, whatever is written between them."""
    position = 0
    for _ in range(MOST_OBJECTS):
        if (opened := _STARTS.search(text, position)) is None:
            return
        start, value = opened.start(), None
        with suppress(ValueError, RecursionError):
            value, position = _WHOLE.raw_decode(text, start)
        if not isinstance(value, dict | list):
            cut, end = _open_at_end(text[start:])[0], text.rfind("}") + 1 or len(text)
            for one in (*_repaired(text[start:]), *_flat(text[start:])):
                yield JsonValue(one, start, end, "cut" if cut else "mended")
            return
        yield JsonValue(value, start, position)


def object_with(text: str, *keys: str) -> dict[str, Any] | None:
    """Return the first object in `text` that has one of `keys`; None if none has, or if it was cut."""
    there = (one for one in objects_in(text) if isinstance(one.value, dict) and one.damage != "cut")
    return next((one.value for one in there if not one.value.keys().isdisjoint(keys)), None)  # type: ignore


def up_to_the_last_end(text: str) -> tuple[str, bool]:
    """Return a text up to the end of its last object that ends, and whether no other is open behind it."""
    start = max(text.find("{"), 0)
    ends = [mark.end() for mark in _STRUCTURE.finditer(text, start) if mark[0] == "}"]
    return text[: ends[-1] if ends else 0], not _open_at_end(text[start:])[0]


def in_ascii(text: str) -> str:
    """Return a text whose JSON is in curly or full-width punctuation with that of ASCII; others unchanged."""
    return text.translate(_IN_ASCII) if _FOREIGN.search(text) and not _MEMORIES.search(text) else text


def simple_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by their names in lower case without punctuation; values of equal names joined."""
    return _joined(("".join(filter(str.isalnum, name.casefold())), item) for name, item in value.items())


def _repaired(text: str) -> list[Any]:
    """Return the objects and lists in a text that is cut or damaged."""
    if len(text) * len(_MARKS.findall(text)) > MOST_MARKS:
        text = text[:2000]
    text = _HALF_ESCAPE.sub("", text)
    closers, pairs_end = _open_at_end(text)
    in_key = [text[:pairs_end]] if _KEY_BEGUN.fullmatch(text, pairs_end) else []
    for begun in (f'{text}{_CUT}"', text.rstrip(", \t\r\n"), *in_key):
        with suppress(ValueError, RecursionError):
            return [_read(_WHOLE.decode(begun + closers))]
    number = iter(range(MOST_OBJECTS))  # equal keys would become one
    text = _MEMORIES.sub(lambda _: f'"memories{next(number, 0) or ""}"', text)
    with suppress(ValueError, RecursionError):
        value = json_repair.loads(("{" if text[0] in "\"'" else "") + text + _CUT, skip_json_loads=True)
        values = value if isinstance(value, list) and text[0] != "[" else [value]
        return [one for one in map(_read, values) if isinstance(one, dict | list) and one]
    return []


def _open_at_end(text: str) -> tuple[str, int]:
    """Return the brackets that close what is open at the end of a text, and where its last pair began."""
    closers, end = "", 0
    for mark in _STRUCTURE.finditer(text):
        if mark[0][0] == '"':
            continue
        end = mark.start() if mark[0] == "," else mark.end()
        if mark[0] in ("{", "["):
            closers = "]}"[mark[0] == "{"] + closers
        elif mark[0] != ",":
            closers = closers[1:]
    return closers, end


def _flat(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects without others in them that a damaged text holds whole: one stray mark loses none."""
    for flat in _FLAT.finditer(text):
        with suppress(ValueError):
            if "message" not in (fields := _WHOLE.decode(flat[1])):
                yield fields


def _read(value: Any) -> Any:
    """Return a repaired value without the mark at its end and the string that was cut there."""
    if isinstance(value, list):
        return [_read(item) for item in value if not (isinstance(item, str) and _CUT in item)]
    if isinstance(value, dict):
        names = (without_surrogates(name).rstrip("123456789") for name in value)
        there = zip(names, value.values(), strict=True)
        return _joined(
            (name, _read(item)) for name, item in there if name == "message" or _CUT not in str(item)[-1:]
        )
    return without_surrogates(value.replace(_CUT, "")) if isinstance(value, str) else value


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


def items(value: Any) -> list[Any]:
    """Return a list as it is, None as an empty one, and any other value as the only item of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


_WHOLE = json.JSONDecoder(strict=False, object_pairs_hook=_joined)
