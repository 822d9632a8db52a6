"""Shows the differences between two texts word by word, with a little of the text around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT = 120
"""Characters of equal text shown before and after a change."""
MAX_WORDS = 600
"""How many words from the first change to the last are compared. Beyond that, all of them count as changed,
because a comparison takes the square of their number."""
MAX_PIECE = 3_000
"""Characters of one piece that are shown."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
Words = Sequence[str]


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
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    head, tail = "".join(old[:start]), "".join(old[len(old) - end :])
    changed, others = old[start : len(old) - end], new[start : len(new) - end]
    spans = [(False, changed, others)]
    if max(len(changed), len(others)) <= MAX_WORDS:
        steps = SequenceMatcher(None, changed, others, autojunk=False).get_opcodes()
        spans = [(kind == "equal", changed[a:b], others[c:d]) for kind, a, b, c, d in steps]
    return WordDiff(
        [*_in_context(head, tail, [(same, words) for same, words, _ in spans])],
        [*_in_context(head, tail, [(same, words) for same, _, words in spans])],
    )


def _shared(one: Words, other: Words) -> int:
    """Return how many words both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (word, their) in pairs if word != their), min(len(one), len(other)))


def _in_context(head: str, tail: str, spans: Sequence[tuple[bool, Words]]) -> Iterator[Piece]:
    same = "characters that are the same"
    yield from _omitted(len(head) - CONTEXT, same)
    for equal, text in ((True, head[-CONTEXT:]), *((equal, "".join(words)) for equal, words in spans)):
        if text:
            yield Piece("same" if equal else "changed", text[:MAX_PIECE])
            yield from _omitted(len(text) - MAX_PIECE, "more characters")
    if tail:
        yield Piece("same", tail[:CONTEXT])
    yield from _omitted(len(tail) - CONTEXT, same)


def _omitted(number: int, what: str) -> Iterator[Piece]:
    if number > 0:
        yield Piece("omitted", f"{number:,} {what}")
