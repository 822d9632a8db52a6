"""What is not the same in two texts, word by word, with a little of what is around it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

AROUND = 120
"""Characters of what is the same that stand before and after a change."""
WORDS = 600
"""Of a text between its first change and its last; beyond these all of it counts as changed, since finding
out takes the square of their number."""
LONGEST_WORD = 40
MOST = 3_000
"""Characters of one piece that are shown."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    how: Literal["same", "changed", "left out"]
    text: str


@dataclass(frozen=True, slots=True)
class Sides:
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def sides(before: str, after: str) -> Sides:
    start = _at_a_word(before, _common(before, after))
    end = _at_a_word(before[start:][::-1], _common(before[start:][::-1], after[start:][::-1]))
    middles = before[start : len(before) - end], after[start : len(after) - end]
    head, tail = before[:start], before[len(before) - end :]
    ours, theirs = _changes(*middles)
    made = [tuple(_framed(head, pieces, tail)) for pieces in (ours, theirs)]
    return Sides(*made)


def _common(one: str, other: str) -> int:
    """How many characters they begin with are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _at_a_word(text: str, length: int) -> int:
    """Back to where the word begins in which it would end."""
    for place in range(length, max(0, length - LONGEST_WORD), -1):
        if not text[place - 1].isalnum():
            return place
    return length if length > LONGEST_WORD else 0


def _changes(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    words, others = _WORD.findall(before), _WORD.findall(after)
    if not words or not others or len(words) > WORDS or len(others) > WORDS:
        return _whole(before), _whole(after)
    ours: list[Piece] = []
    theirs: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        how: Literal["same", "changed"] = "same" if kind == "equal" else "changed"
        ours += _piece(how, "".join(words[a:b]))
        theirs += _piece(how, "".join(others[c:d]))
    return ours, theirs


def _piece(how: Literal["same", "changed"], text: str) -> list[Piece]:
    return [Piece(how, text)] if text else []


def _whole(text: str) -> list[Piece]:
    if len(text) <= MOST:
        return _piece("changed", text)
    return [Piece("changed", text[:MOST]), Piece("left out", f"{len(text) - MOST:,} more characters")]


def _framed(head: str, pieces: list[Piece], tail: str) -> Iterator[Piece]:
    if len(head) > AROUND:
        yield Piece("left out", f"{len(head) - AROUND:,} characters that are the same")
    yield from _piece("same", head[-AROUND:] if head else "")
    yield from pieces
    yield from _piece("same", tail[:AROUND])
    if len(tail) > AROUND:
        yield Piece("left out", f"{len(tail) - AROUND:,} characters that are the same")
