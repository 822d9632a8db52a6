"""Shows the differences between two texts word by word, with a little of the text around them."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 120
"""Characters of equal text shown before and after a change."""
MAX_WORDS = 600
"""How many words from the first change to the last are compared. Beyond that, all of them count as changed,
because a comparison takes the square of their number."""
MAX_WORD = 40
"""Characters. A longer word may be split."""
MAX_PIECE = 3_000
"""Characters of one piece that are shown."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
Kind = Literal["same", "changed", "omitted"]


@dataclass(frozen=True, slots=True)
class Piece:
    kind: Kind
    text: str
    """The text; for `omitted`, a description of what is left out."""


@dataclass(frozen=True, slots=True)
class WordDiff:
    before: list[Piece]
    after: list[Piece]


def word_diff(before: str, after: str) -> WordDiff:
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    head, tail = before[:start], before[len(before) - end :]
    old, new = _changes(before[start : len(before) - end], after[start : len(after) - end])
    return WordDiff(_in_context(head, old, tail), _in_context(head, new, tail))


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix, shortened so that it does not split a word."""
    pairs = enumerate(zip(one, other, strict=False))
    length = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    for end in range(length, max(0, length - MAX_WORD), -1):
        if not one[end - 1].isalnum():
            return end
    return length if length > MAX_WORD else 0


def _changes(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    words, others = _WORD.findall(before), _WORD.findall(after)
    if not words or not others or max(len(words), len(others)) > MAX_WORDS:
        return _cut(before), _cut(after)
    old: list[Piece] = []
    new: list[Piece] = []
    for operation, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        kind: Kind = "same" if operation == "equal" else "changed"
        old += _piece(kind, "".join(words[a:b]))
        new += _piece(kind, "".join(others[c:d]))
    return old, new


def _cut(text: str) -> list[Piece]:
    return [*_piece("changed", text[:MAX_PIECE]), *_omitted(len(text) - MAX_PIECE, "more characters")]


def _in_context(head: str, pieces: list[Piece], tail: str) -> list[Piece]:
    return [
        *_omitted(len(head) - CONTEXT),
        *_piece("same", head[-CONTEXT:]),
        *pieces,
        *_piece("same", tail[:CONTEXT]),
        *_omitted(len(tail) - CONTEXT),
    ]


def _piece(kind: Kind, text: str) -> list[Piece]:
    return [Piece(kind, text)] if text else []


def _omitted(number: int, what: str = "characters that are the same") -> list[Piece]:
    return _piece("omitted", f"{number:,} {what}" if number > 0 else "")
