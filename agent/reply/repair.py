"""Reading JSON that a model wrote badly: one pass, no recursion, never an error.

What is understood besides JSON: single, curly and backtick quotes, Python and JavaScript literals, comments,
bare keys, missing or extra commas and closers, raw newlines and unescaped quotes in strings, a text that
stops anywhere. What a reader must know is kept: an object or a string that the text never finished is marked
as cut, and a key that appears twice loses none of its lists.

The json-repair library was measured first. It fills in what was cut without saying so, keeps one of two
equal keys, cannot tell a curly apostrophe from a closing quote, and raises RecursionError on 100 kB of ``[``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.reply.quotes import (
    AFTER_ANY,
    AFTER_FIELD,
    AFTER_ITEM,
    AFTER_TOP,
    CLOSERS,
    NEXT_KEY,
    OBJECT,
    READ_KEY,
    SPACE,
    STOPS,
    end_before_key,
    unescape,
)

DEEPEST = 60
"""Objects nested deeper than this are not what a model answers with."""

_BETWEEN = re.compile(rf"(?:{SPACE}|//[^\n]*|/\*(?:.*?\*/|.*\Z)|\#[^\n]*)*+", re.DOTALL)

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?(?=[\s,}\])]|\Z)")
_BARE_END = re.compile(rf"""[}}\])\n]|,{SPACE}*+(?:["'“]?\w{{1,40}}+["'”]?{SPACE}*+:|[}}\]])|\s//|\s/\*""")
_BARE_ITEM_END = re.compile(r"[,}\])\n]")
_LITERALS: dict[str, object] = {
    **dict.fromkeys(("null", "none", "undefined", "nil", "nan", "infinity", "-infinity"), None),
    "true": True,
    "false": False,
}


class Fields(dict[str, object]):
    """An object as read."""

    cut = False
    """Whether the text ended before the object did."""


class CutText(str):
    """A string, or a bare word, that the text ended in the middle of."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An object found in a text: what it says and where it stands."""

    value: Fields
    start: int
    end: int


def objects_in(text: str, wanted: Callable[[Fields], bool]) -> Iterator[Found]:
    """The objects that stand in `text` one after the other, whatever is written between them.

    One that never ends hides what follows, so it counts only if it is `wanted`. Bounded: gives up once
    several times the length of the text has been read, or after a thousand objects.
    """
    position, allowance = 0, 3 * len(text) + 10_000
    for _ in range(1000):
        opening = OBJECT.search(text, position)
        if opening is None or allowance < 0:
            return
        reader = _Reader(text, opening.start())
        value = reader.read()
        allowance -= reader.position - opening.start()
        if value is None or (value.cut and not wanted(value)):
            position = opening.start() + 1
        else:
            yield Found(value, opening.start(), reader.position)
            position = reader.position


class _Reader:
    """One object, read from its brace on. `position` is where reading stopped."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start + 1
        self.root = Fields()
        self.stack: list[Fields | list[object]] = [self.root]
        self.keys: list[str | None] = [None]
        """The key whose value is awaited, for each container of the stack."""

    def read(self) -> Fields | None:
        """The object, or None where it nests deeper than any answer."""
        text, length = self.text, len(self.text)
        while self.stack:
            self.position = _end(_BETWEEN, text, self.position)
            if self.position >= length:
                self._mark_cut()
                break
            if len(self.stack) > DEEPEST:
                return None
            mark = text[self.position]
            if mark in "}])":
                self._close(mark)
            elif mark in ",;":
                self.position += 1
            elif isinstance(self.stack[-1], Fields) and self.keys[-1] is None:
                self._key(mark)
            else:
                self._value(mark)
        return self.root

    def _mark_cut(self) -> None:
        for container in self.stack:
            if isinstance(container, Fields):
                container.cut = True

    def _close(self, mark: str) -> None:
        """Close what `mark` closes, and on the way whatever was left open inside it."""
        self.position += 1
        wanted = Fields if mark == "}" else list
        if any(isinstance(container, wanted) for container in self.stack):
            while not isinstance(self.stack[-1], wanted):
                self._pop()
            if len(self.stack) > 1 or not self._continues():
                self._pop()

    def _continues(self) -> bool:
        """Whether another of our keys follows the outermost closer, which then came too early."""
        comma = _end(_BETWEEN, self.text, self.position)
        if self.text[comma : comma + 1] != ",":
            return False
        return NEXT_KEY.match(self.text, _end(_BETWEEN, self.text, comma + 1)) is not None

    def _pop(self) -> None:
        self.stack.pop()
        self.keys.pop()

    def _push(self, container: Fields | list[object]) -> None:
        """Open a container; a second list of one name goes on filling the first."""
        top, key = self.stack[-1], self.keys[-1]
        before = top.get(key) if isinstance(top, Fields) and key is not None else None
        if isinstance(before, list) and isinstance(container, list):
            container, self.keys[-1] = before, None
        else:
            self._put(container)
        self.stack.append(container)
        self.keys.append(None)
        self.position += 1

    def _put(self, value: object) -> None:
        """Store under the awaited key, or at the end of the list."""
        top = self.stack[-1]
        if isinstance(top, list):
            top.append(value)
            return
        key, self.keys[-1] = self.keys[-1] or "", None
        before = top.get(key)
        if isinstance(before, list):
            before.append(value)
        elif isinstance(before, Fields) and isinstance(value, Fields):
            top[key] = [before, value]
        else:
            top[key] = value

    def _key(self, mark: str) -> None:
        match = READ_KEY.match(self.text, self.position)
        if match is not None:
            self.keys[-1] = match[2] or match[1][1:-1].strip()
            self.position = match.end()
        elif mark == "{" and len(self.stack) > 1 and isinstance(self.stack[-2], list):
            self._pop()
        elif mark in CLOSERS:
            self._string(mark)
        else:
            self.position += 1

    def _value(self, mark: str) -> None:
        if mark == "{":
            self._push(Fields())
        elif mark in "[(":
            self._push([])
        elif mark not in CLOSERS:
            self._put(self._bare())
        elif self._at_key():
            self._pop()  # the list was never closed: this is the next key of its object
        else:
            self._put(self._string(mark))

    def _at_key(self) -> bool:
        """Whether one of our keys stands where a list's next value should, and an object may take it."""
        inside = (
            len(self.stack) > 1 and isinstance(self.stack[-1], list) and isinstance(self.stack[-2], Fields)
        )
        return inside and NEXT_KEY.match(self.text, self.position) is not None

    def _string(self, mark: str) -> str:
        """The string that opens here; `position` goes behind it."""
        text, start = self.text, self.position + 1
        if text.startswith(mark * 3, self.position) and (end := text.find(mark * 3, start + 2)) > 0:
            self.position = end + 3
            return unescape(text[start + 2 : end])
        ended = self._end_of_string(mark, start) or self._end_of_string(mark, start, lax=True)
        if ended is None:
            self.position = len(text)
            return CutText(unescape(text[start:]))
        end, self.position = ended
        return unescape(text[start:end])

    def _end_of_string(self, mark: str, start: int, lax: bool = False) -> tuple[int, int] | None:
        """Where the string's text ends and where to read on; None when nothing closes it.

        Quotes inside a ``{"…`` that the sentence itself opened belong to the sentence, unless `lax`.
        """
        text, inner = self.text, 0
        in_list = isinstance(self.stack[-1], list)
        follows = AFTER_ITEM if in_list else AFTER_ANY if lax else AFTER_TOP
        if not in_list and not lax and len(self.stack) > 1:
            follows = AFTER_FIELD
        for stop in STOPS[mark].finditer(text, start):
            at, found = stop.start(), stop[0]
            if found[0] == "\\":
                continue
            if found[0] == "{":
                inner += not lax
            elif found == "}":
                inner = max(0, inner - 1)
            elif inner == 0:
                if follows.match(text, at + 1):
                    return at, at + 1
                if not in_list and (end := end_before_key(text, start, at)):
                    return end, at
        return None

    def _bare(self) -> object:
        in_list = isinstance(self.stack[-1], list)
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            self.position = number.end()
            return int(number[0]) if number[0].isdecimal() and len(number[0]) < 16 else float(number[0])
        end = (_BARE_ITEM_END if in_list else _BARE_END).search(self.text, self.position + 1)
        stop = end.start() if end else len(self.text)
        word = self.text[self.position : stop].strip()
        self.position = stop
        literal = _LITERALS.get(word.lower(), word)
        return CutText(word) if end is None and isinstance(literal, str) else literal


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
