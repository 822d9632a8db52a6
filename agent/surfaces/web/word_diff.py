"""Compare two texts word by word, and show a little text around each difference."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Indel

CONTEXT = 120
"""Characters of equal text shown before and after a change."""
MAX_PIECE = 3_000
"""Maximum characters of one piece that are shown."""
MAX_BY_WORD = 16_000
"""Maximum characters of both texts that are compared word by word; longer texts are compared line by line."""

_WORD, _LINE = re.compile(r"\w+|\s+|[^\w\s]"), re.compile(r".*\n|.+")
Span = tuple[bool, str]
"""Whether a text is the same on both sides, and the text."""


@dataclass(frozen=True, slots=True)
class Piece:
    kind: Literal["same", "changed", "omitted"]
    text: str
    """The text; for `omitted`, a description of what is left out."""


@dataclass(frozen=True, slots=True)
class WordDiff:
    before: list[Piece]
    after: list[Piece]


def word_diff(before: str, after: str) -> WordDiff:
    parts = _WORD if len(before) + len(after) <= MAX_BY_WORD else _LINE
    old, new = parts.findall(before), parts.findall(after)
    removed, added = list[Span](), list[Span]()
    for step in Indel.opcodes(old, new):
        removed.append((step.tag == "equal", "".join(old[step.src_start : step.src_end])))
        added.append((step.tag == "equal", "".join(new[step.dest_start : step.dest_end])))
    return WordDiff([*_pieces(removed)], [*_pieces(added)])


def _pieces(spans: Sequence[Span]) -> Iterator[Piece]:
    """Yield the differences, and of equal texts only the ends next to a difference."""
    spans = [one for one in spans if one[1]]
    for place, (same, text) in enumerate(spans):
        if not same:
            yield Piece("changed", text[:MAX_PIECE])
            yield from _omitted(len(text) - MAX_PIECE, "more characters")
            continue
        begin, end = CONTEXT * (place > 0), CONTEXT * (place < len(spans) - 1)
        if len(text) <= begin + end:
            yield Piece("same", text)
            continue
        yield Piece("same", text[:begin])
        yield from _omitted(len(text) - begin - end, "characters that are the same")
        yield Piece("same", text[len(text) - end :])


def _omitted(number: int, what: str) -> Iterator[Piece]:
    if number > 0:
        yield Piece("omitted", f"{number:,} {what}")
