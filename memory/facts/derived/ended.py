"""What of a message has ended, so that the rest of it can still be read."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memory.index import bm25

Part = tuple[int, int]
"""Where a part of a text begins and ends, in characters."""

_CLAUSE_END = re.compile(
    r"[.!?…;:,](?=\s)|[。！？；、，]|\s[-–—]\s|\n"
    r"|\s(?=(?:and|but|et|mais|y|e|pero|mas|und|aber|och|og|men|en|maar|и|а|но|i|ale|και|αλλά|אבל)\s)"
    r"|\s(?=ו[א-ת])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Ended:
    """What of one message has ended."""

    parts: tuple[Part, ...] | None
    """Where the message states it; None if that is all of it, or cannot be told."""
    facts: tuple[str, ...] = ()
    """The facts, as far as they are still stored."""

    def rest(self, text: str) -> str:
        """What is left of the message; empty if nothing is."""
        kept, at = "", 0
        for start, end in self.parts or [(0, len(text))]:
            kept, at = f"{kept}{text[at:start]} … ", end
        rest = " ".join((kept + text[at:]).split())
        return rest if _words(rest) else ""


def ended_parts(text: str, facts: Collection[str], names: str) -> tuple[Part, ...] | None:
    """Where the text states the facts, as in `Ended.parts`: the clauses that share most words with a fact,
    half of its words or more, and those that say nothing else. `names` are the person's own, who says "I"."""
    clauses = [(part, _words(text[slice(*part)])) for part in _clauses(text)]
    own, found = _words(names), set[Part]()
    for fact in facts:
        wanted = _words(fact) - own
        most = max((len(wanted & words) for _, words in clauses), default=0)
        if not most or 2 * most < len(wanted):
            return None
        found |= {part for part, words in clauses if len(wanted & words) == most or words <= wanted}
    return tuple(sorted(found)) if len(found) < len(clauses) else None


def _clauses(text: str) -> Iterator[Part]:
    """The clauses that have words."""
    start = 0
    for end in [*(found.end() for found in _CLAUSE_END.finditer(text)), len(text)]:
        if _words(text[start:end]):
            yield start, end
            start = end


def _words(text: str) -> frozenset[int]:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
