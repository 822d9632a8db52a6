"""Reads malformed JSON from a model in one pass, with bounded depth and without raising.

It accepts any quotes, full-width punctuation, Python and JavaScript literals, comments, bare keys, missing or
extra commas and closers, raw newlines and quotes in strings, and truncated text. The json-repair library does
not say what was cut, drops one of two equal keys, and ends strings at any quote.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from memory.text import without_surrogates

DEEPEST = 60
"""Levels of nesting. No answer needs more."""

_BLANK = r"[\s\u200b-\u200f\u2060\ufeff]"
# Comments are bounded where the pattern is tried at many places: no text may make it quadratic.
_GAP = rf"(?:{_BLANK}|//[^\n]{{0,80}}\n|/\*[^*]{{0,80}}\*/)*+"
_QUOTED_KEY = r"""(?:"[^"\n]{1,60}+"|'[^'\n]{1,60}+'|`[^`\n]{1,60}+`)"""
_BARE_KEY = r"[A-Za-z_]\w{0,40}+"
_COLON = rf"{_BLANK}*+:"
_OBJECT = re.compile(rf"{{{_GAP}(?:{_QUOTED_KEY}|{_BARE_KEY}){_COLON}")
READ_KEY = re.compile(rf"(?:({_QUOTED_KEY})|({_BARE_KEY})){_BLANK}*+(?::|=>|=)")
_OUR_KEY = rf"""(?i:["'](?:message|memories|content|subjects|ttl|type|importance|replaces)["']{_COLON})"""
NEXT_KEY = re.compile(_OUR_KEY)

_CONTINUES = re.compile(rf"{_GAP},{_GAP}{_OUR_KEY}")

# What may follow a closing quote. A bare key counts only before something that is clearly a value.
_ANY_KEY = rf"""(?:{_QUOTED_KEY}{_COLON}|{_BARE_KEY}{_COLON}{_BLANK}*+(?:["'\[{{\d]|null|None|true|false))"""
_CUT_KEY = rf"""["']?\w{{0,40}}+["']?{_BLANK}*+\Z"""
_AFTER_FIELD = re.compile(
    rf"{_GAP}\Z"
    rf"|{_GAP},{_GAP}(?:[}}\]]|{_CUT_KEY}|{_ANY_KEY}|\{{{_GAP}{_QUOTED_KEY}{_COLON})"
    rf"|{_GAP};?{_GAP}{_OUR_KEY}"
    rf"|[^\S\n]*+\n{_BLANK}*+{_QUOTED_KEY}{_COLON}"
    rf"|{_GAP}\]{_GAP}(?:[,}}\]]|\Z)"
    rf"|{_GAP}}}(?:{_GAP}(?:[,}}\])<{{`]|\Z)|[^\S\n]*+\n)"
    rf'|{_GAP}}}(?![^"\n]{{0,80}}")'  # prose may follow the object, but no more quotes on that line
)
_AFTER_ITEM = re.compile(
    rf"{_GAP}(?:\Z|[\])])"
    rf"""|{_GAP},{_GAP}(?:["'`{{\[\])]|\Z|(?:null|None|-?\d+){_GAP}[,\])])"""
    rf"|{_GAP}}}{_GAP}(?:[,}}\]]|\Z)"
    rf"""|[^\S\n]*+\n{_BLANK}*+["']"""
)

CLOSERS = {'"': '"', "'": "'", "`": "`", "「": "」", "『": "』", "＂": '＂"', "″": "″"}
CLOSERS |= dict.fromkeys("“”„", '”“"') | dict.fromkeys("‘’‚＇", "’'＇")
CLOSERS |= {"«": "»", "»": "«", "」": "」", "』": "』"}
_STOPS = {opener: re.compile(rf"\\.|[{closers}]", re.DOTALL) for opener, closers in CLOSERS.items()}
_SYNTAX = str.maketrans(
    "｛｝［］【】（）：﹕，﹐、；“”„＂″「」『』«»‘’‚＇", "{}[][]()::,,,;" + '"' * 11 + "'" * 4
)

_BETWEEN = re.compile(rf"(?:{_BLANK}|[,;]|//[^\n]*|/\*(?:.*?\*/|.*\Z)|\#[^\n]*)*+", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?(?=[\s,}\])]|\Z)")
_BARE_END = re.compile(rf"""[}}\])\n]|,{_BLANK}*+(?:["']?\w{{1,40}}+["']?{_COLON}|[}}\]])|\s//|\s/\*""")
_BARE_ITEM_END = re.compile(r"[,}\])\n]")
_LITERALS: dict[str, object] = dict.fromkeys("null none undefined nil nan infinity -infinity".split())
_LITERALS |= {"true": True, "false": False}

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|u[0-9a-fA-F]{0,3}\Z|\Z|(.))", re.DOTALL
)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "", "\n": ""}
_PLAIN_ESCAPES |= {mark: mark for mark in "\"'`\\/“”‘’"}


class Fields(dict[str, object]):
    """The fields of an object. `cut` tells whether the text ended before the object did."""

    cut = False

    def put(self, name: str, value: object) -> None:
        """Set a field. If it exists, keep both values in one list."""
        before = self.get(name)
        if before is not None and value is None:
            return
        if isinstance(before, list):
            before.extend(value if isinstance(value, list) else [value])
        elif isinstance(before, dict) and isinstance(value, dict):
            self[name] = [before, value]
        else:
            self[name] = value


class CutText(str):
    """A string or bare word that the end of the text cuts off."""


class Found(NamedTuple):
    """An object in a text and its position."""

    value: Fields
    start: int
    end: int


def object_with(text: str, *keys: str) -> Fields | None:
    """Return the first object in `text` that has one of `keys`, or None."""
    found = objects_in(text, lambda fields: any(key in fields for key in keys))
    return next((one.value for one in found if any(key in one.value for key in keys)), None)


def objects_in(text: str, wanted: Callable[[Fields], bool] = bool) -> Iterator[Found]:
    """Yield the successive objects in `text`, at most a thousand, whatever is written between them. An
    unfinished object hides the text after it, so it counts only if it is `wanted`."""
    position, allowance, syntax = 0, 3 * len(text) + 10_000, in_ascii(text)
    for _ in range(1000):
        opening = _OBJECT.search(syntax, position)
        if opening is None or allowance < 0:
            return
        found = read_object(text, opening.start(), syntax)
        allowance -= found.end - found.start
        if found.value.cut and not wanted(found.value):
            position = found.start + 1
        else:
            yield found
            position = found.end


def in_ascii(text: str) -> str:
    """Return the text with curly and full-width JSON punctuation as ASCII, each character in its place."""
    return text if text.isascii() else text.translate(_SYNTAX)


def read_object(text: str, start: int, syntax: str | None = None) -> Found:
    """Read the object whose brace is at `start`. It is cut if the text ends or the nesting is too deep.
    `syntax` is `in_ascii(text)`, if known."""
    reader = _Reader(text, syntax or in_ascii(text), start)
    return Found(reader.read(), start, reader.at)


def unescape(raw: str) -> str:
    """Decode the inside of a string. Unknown escapes stay; an incomplete one is dropped."""
    return _ESCAPE.sub(_unescaped, raw) if "\\" in raw else raw


def _unescaped(match: re.Match[str]) -> str:
    short, long, byte, mark = match.groups()
    if digits := short or long or byte:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else match[0]
    return "" if mark is None else _PLAIN_ESCAPES.get(mark, match[0])


class _Reader:
    """Reads one object from its opening brace. `at` is the position where reading stopped. Strings are taken
    from the text, and what is around them is read in ASCII."""

    def __init__(self, text: str, syntax: str, start: int) -> None:
        self.text = text
        self.syntax = syntax
        self.at = start
        self._open: list[Fields | list[object]] = []

    def read(self) -> Fields:
        fields = Fields()
        self._enter(fields)
        while mark := self._mark():
            if mark in "])" and any(isinstance(container, list) for container in self._open):
                break  # this closes a list around the object
            if mark == "}":
                self.at += 1
                if len(self._open) > 1 or not _CONTINUES.match(self.syntax, self.at):
                    break  # unless another key follows the outermost closer, which came too early
            elif key := READ_KEY.match(self.syntax, self.at):
                name, self.at = self.text[key.start() : key.end(key.lastindex or 0)], key.end()
                if (mark := self._mark()) not in "}])":  # also at the end of the text
                    fields.put(name if key[2] else name[1:-1].strip(), self._value(mark))
            elif mark == "{" and len(self._open) > 1 and isinstance(self._open[-2], list):
                break  # the next item: the closing brace is missing
            elif mark in CLOSERS:
                self._string()
            else:
                self.at += 1
        else:
            fields.cut = True
        self._open.pop()
        return fields

    def _list(self, items: list[object]) -> list[object]:
        inside_object = isinstance(self._open[-1], Fields)
        self._enter(items)
        while (mark := self._mark()) and mark != "}":
            if mark in "])":
                self.at += 1
                break
            if inside_object and mark in CLOSERS and NEXT_KEY.match(self.syntax, self.at):
                break  # the list has no closer: this is the next key of its object
            items.append(self._value(mark))
        self._open.pop()
        return items

    def _enter(self, container: Fields | list[object]) -> None:
        self._open.append(container)
        self.at += 1
        if len(self._open) > DEEPEST:
            self.at = len(self.text)

    def _mark(self) -> str:
        """Return the next significant character in ASCII; empty at the end."""
        gap = _BETWEEN.match(self.syntax, self.at)
        self.at = gap.end() if gap else self.at
        return self.syntax[self.at : self.at + 1]

    def _value(self, mark: str) -> object:
        if mark == "{":
            return self.read()
        if mark in "[(":
            return self._list([])
        return self._string() if mark in CLOSERS else self._bare()

    def _string(self) -> str:
        text, start, mark = self.text, self.at + 1, self.text[self.at]
        if text.startswith(mark * 3, self.at) and (end := text.find(mark * 3, start + 2)) > 0:
            self.at = end + 3
            return without_surrogates(unescape(text[start + 2 : end]))
        ended = self._end_of_string(mark, start)
        end, self.at = ended or (len(text), len(text))
        inside = without_surrogates(unescape(text[start:end]))
        return inside if ended else CutText(inside)

    def _end_of_string(self, mark: str, start: int) -> tuple[int, int] | None:
        """Return where the string's text ends and where to read on; None if nothing closes it."""
        in_list = isinstance(self._open[-1], list)
        follows = _AFTER_ITEM if in_list else _AFTER_FIELD
        for stop in _STOPS[mark].finditer(self.text, start):
            at = stop.start()
            if stop[0][0] == "\\":
                continue
            if follows.match(self.syntax, at + 1):
                return at, at + 1
            before = self.syntax[max(start, at - 20) : at].rstrip()
            if not in_list and before.endswith(",") and NEXT_KEY.match(self.syntax, at):
                return self.syntax.rindex(",", start, at), at  # the closing quote is missing
        return None

    def _bare(self) -> object:
        if number := _NUMBER.match(self.syntax, self.at):
            self.at = number.end()
            return int(number[0]) if number[0].isdecimal() and len(number[0]) < 16 else float(number[0])
        ends = _BARE_ITEM_END if isinstance(self._open[-1], list) else _BARE_END
        end = ends.search(self.syntax, self.at + 1)
        stop = end.start() if end else len(self.text)
        word = self.text[self.at : stop].strip()
        self.at = stop
        literal = _LITERALS.get(word.lower(), word)
        return CutText(word) if end is None and isinstance(literal, str) else literal
