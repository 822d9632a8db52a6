"""Finds the JSON objects in what a model wrote, whole or damaged.

Whole ones are read strictly, and two equal keys give one list. json-repair reads the others: single
quotes, comments, bare keys, missing commas and closers, quotes and newlines in strings, truncated text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from json_repair.json_parser import JSONParser

from memory.text import without_surrogates

MOST_WORK = 100_000_000
"""Characters times marks that are repaired in one text, at most three seconds: json-repair is quadratic where
a text is nothing but quotes or braces. An answer of 30,000 characters with 3,000 marks is within, and takes
0.1 seconds."""
LAST_REPAIRED = 2000
"""Characters that are repaired of a text with more, so that its message begins at least."""
MOST_OBJECTS = 1000
_END = "\uffff"
"""Stands after the last character while a text is repaired, so that what it ends up in is known to be cut."""
_BACKSLASH = "\ufffe"
"""Stands for two while a text is repaired: json-repair reads an escape in their second one."""

_GAP = r"(?:\s|//[^\n]{0,80}\n|/\*[^*]{0,80}\*/)*+"
_KEY = r"""(?:"[^"\n]{1,60}+"|'[^'\n]{1,60}+'|`[^`\n]{1,60}+`|[A-Za-z_]\w{0,40}+)"""
_OPENS = re.compile(
    rf"(?P<object>\{{{_GAP}(?:{_KEY}\s*+:|[\\\"']*(?:message|memories|content)[\\\"':]))"
    rf"|(?P<list>\[\s*+(?:[\"']|\{{\s*+[\"']))"
    r"|(?P<fields>[\"'](?:message|memories)[\"']\s*+:)",
    re.IGNORECASE,
)
"""Where an object or a list begins; or the fields of one whose brace is missing."""
_FLAT = re.compile(r'(?=(\{\s*+(?=")(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}))', re.DOTALL)
"""An object without others in it."""
_QUOTES = re.compile(r'(?<!\\)"')
_MARKS = re.compile(r"[\"'{}\[\]]")
_OTHER_STRINGS = re.compile(r'(?<=[:\[,{ ])("""|`)((?:(?!```).){0,4000}?)\1(?=\s*[,}\]:])', re.DOTALL)
_UNCLOSED = re.compile(r"(?<=[^\"'\]}\s,])(?<!null),\s*(?=\"memories\"\s*:)")
_MEMORIES = re.compile(r"""(["'])memories\1(?=\s*:)""")
_INVISIBLE = "\u2060"
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FOREIGN = re.compile(r"[{｛][\s\[［]*[“”„«»‘’＂＇「『″]|[\"”＂]\s*[：﹕]")
_ASCII_KEY = re.compile(r"""["'](?:message|memories)["']\s*:""")
_IN_ASCII = str.maketrans("｛｝［］【】：﹕，﹐、“”„＂″「」『』«»", "{}[][]::,,," + '"' * 11)
_OUTER_APOSTROPHE = re.compile(r"(?<!\w)[‘’＇]|[‘’＇](?!\w)")
_ESCAPE = re.compile(r"""\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])""")


class Fields(dict[str, Any]):
    """The fields of an object. `cut` tells whether the text ended before the object did."""

    cut = False

    def put(self, name: str, value: Any) -> None:
        """Set a field. If it exists, keep both values in one list."""
        before = self.get(name)
        if isinstance(before, list | dict) and value is not None:
            self[name] = [*_items(before), *_items(value)]
        elif before is None or value is not None:
            self[name] = value

    @classmethod
    def named(cls, value: Mapping[str, Any]) -> "Fields":
        """Return fields with their names in lower case and without punctuation; those of one name joined."""
        fields = cls()
        fields.cut = getattr(value, "cut", False)
        for name, item in value.items():
            fields.put("".join(filter(str.isalnum, name.casefold())), item)
        return fields

    def first(self, names: Iterable[str]) -> Any:
        """Return the value of the first of these names that has one; None if none has."""
        return next((self[name] for name in names if self.get(name) is not None), None)


class CutText(str):
    """A string that the end of the text cuts off."""


class Found(NamedTuple):
    """An object or a list in a text, and its position."""

    value: Fields | list[Any]
    start: int
    end: int
    whole: Sequence[Fields] = ()
    """The objects without others in them that a damaged one holds undamaged: one stray mark loses none."""


def objects_in(text: str) -> Iterator[Found]:
    """Yield the successive objects and lists in a text, whatever is written between them."""
    position, work = 0, MOST_WORK
    for _ in range(MOST_OBJECTS):
        if (opened := _OPENS.search(text, position)) is None:
            return
        start, value, whole = opened.start(), None, list[Fields]()
        with suppress(ValueError, RecursionError):
            value, position = _WHOLE.raw_decode(text, start)
        if not isinstance(value, Fields | list):
            work -= (len(text) - start) * len(_MARKS.findall(text, start))
            if work < 0:
                text = text[: start + LAST_REPAIRED]
            # the objects of a damaged list are found one by one
            damaged_list = (None, start + 1)
            value, position = damaged_list if opened["list"] else _repaired(text, start, opened["fields"])
            whole = [*_whole(text, start, position)] if value else []
        if value is not None:
            yield Found(value, start, position, whole)
        if work < 0:
            return


def object_with(text: str, *keys: str) -> Fields | None:
    """Return the first object in `text` that has one of `keys`, or None."""
    values = [found.value for found in objects_in(text) if isinstance(found.value, Fields)]
    return next((value for value in values if not value.keys().isdisjoint(keys)), None)


def unescape(raw: str) -> str:
    """Decode the escapes inside a JSON string. Others stay."""
    return _ESCAPE.sub(lambda escape: str(json.loads(f'"{escape[0]}"')), raw)


def in_ascii(text: str) -> str:
    """Return a text whose JSON is in curly or full-width punctuation with that of ASCII; others unchanged."""
    if _ASCII_KEY.search(text) or not _FOREIGN.search(text):
        return text
    return _OUTER_APOSTROPHE.sub("'", text.translate(_IN_ASCII))


def _repaired(text: str, start: int, bare: str | None) -> tuple[Fields | None, int]:
    """Return what json-repair makes of the text at `start`, and where it ends; None, and where to read on, if
    it makes nothing. `bare` fields lack the brace before them."""
    damaged = _HALF_ESCAPE.sub("", ("{" if bare else "") + text[start:].replace("\\\\", _BACKSLASH)) + _END
    damaged = _UNCLOSED.sub('", ', _OTHER_STRINGS.sub(lambda string: json.dumps(string[2]), damaged))
    seen = count()  # equal keys would become one; `Fields.named` joins these
    damaged = _MEMORIES.sub(lambda key: f'"memories{next(seen) * _INVISIBLE}"', damaged)
    parser = JSONParser(damaged, None, False)
    value = None
    with suppress(RecursionError, ValueError):
        value = _marked(parser.parse_json())
    if not isinstance(value, Fields) or not value:
        return None, start + 1
    rest = damaged[parser.index :].removesuffix(_END)
    ended = damaged.rstrip(f" \n\t`,]){_END}").endswith("}")
    open_ = any(damaged.count(left) > damaged.count(right) for left, right in ("{}", "[]"))
    if not rest and (not ended or (open_ and len(_QUOTES.findall(damaged)) % 2)):  # it ends in a string
        _cut_last(value)
    return value, len(text) - len(rest)


def _whole(text: str, start: int, end: int) -> Iterator[Fields]:
    for flat in _FLAT.finditer(text, start, end):
        with suppress(ValueError):
            yield _WHOLE.decode(flat[1])


def _marked(value: Any) -> Any:
    """Return a repaired value with `Fields` for its objects, and `CutText` for the string that was cut."""
    if isinstance(value, dict):
        return _fields((without_surrogates(name), _marked(item)) for name, item in value.items())
    if isinstance(value, list):
        return [_marked(item) for item in value]
    if isinstance(value, str):
        text = without_surrogates(value.replace(_END, "").replace(_BACKSLASH, "\\"))
        return CutText(text) if _END in value else text
    return value


def _cut_last(value: Any) -> None:
    """Note for the innermost last objects of a value that the text ended in them."""
    while value and isinstance(value, dict | list):
        if isinstance(value, Fields):
            value.cut = True
        value = [*value.values()][-1] if isinstance(value, dict) else value[-1]


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _fields(pairs: Iterable[tuple[str, Any]]) -> Fields:
    fields = Fields()
    for name, value in pairs:
        fields.put(name, value)
    return fields


_WHOLE = json.JSONDecoder(strict=False, object_pairs_hook=_fields)
