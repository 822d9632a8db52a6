"""Compares task descriptions: ids decide, then the same words. Likeness finishes a task where one alone fits,
and shows those that a new one resembles."""

import re
from typing import Any

from rapidfuzz import fuzz

from memory.facts.compare.tokens import words_of
from memory.index.bm25 import stems

SURE = 92.0
"""Similarity of the letters (0 to 100) from which a description may mean a task."""

_SHOWN = re.compile(r"\[?\s*(?:task\s+)?#?([^\]]*?)\s*\]?", re.IGNORECASE)


def likeness(one: str, other: str) -> float:
    """How alike the words of two descriptions are, from 0 to 100. All words of one suffice for 100."""
    texts = (" ".join(word.key for word in words_of(text)) for text in (one, other))
    return fuzz.token_set_ratio(*texts)


def may_mean(said: str, description: str) -> bool:
    """Whether all words of one stand in the other, in some form, in their order and nearly together, without
    a negation among those that are left."""
    asked, there = [[word.key for word in words_of(text)] for text in (said, description)]
    left = [word for word in words_of(f"{said} {description}") if (word.key in asked) != (word.key in there)]
    stemmed = stems(" ".join(asked)), stems(" ".join(there))
    within = stemmed[0] <= stemmed[1] or stemmed[1] <= stemmed[0]
    alike = [measure(" ".join(asked), " ".join(there)) for measure in (fuzz.ratio, fuzz.partial_ratio)]
    return within and max(alike) >= SURE and not any(word.negates for word in left)


def bare_id(id: Any) -> Any:
    """The id in "[task 1a2b3c4d]", which the prompt shows, or in a part of it. None if it is blank or "null".
    A value that is no text is returned unchanged."""
    if not isinstance(id, str):
        return id
    found = _SHOWN.fullmatch(id.strip())
    bare = found[1] if found else id.strip()
    return None if bare.lower() in {"", "null", "none", "new"} else bare
