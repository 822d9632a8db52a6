"""Compares task descriptions: ids decide, then the same words. Likeness finishes a task where one alone fits,
and shows those that a new one resembles."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz

from memory.facts.compare.tokens import Word, emoji_of, words_of
from memory.index import bm25

SURE = 90.0
"""Similarity of the words (0 to 100) from which a description may mean a task."""

_SHOWN = re.compile(r"\[?\s*(?:task\s+)?#?([^\]]*?)\s*\]?", re.IGNORECASE)


def likeness(one: str, other: str) -> float:
    """How alike the words of two descriptions are, from 0 to 100. All words of one suffice for 100."""
    texts = (" ".join(word.key for word in words_of(text)) for text in (one, other))
    return fuzz.token_set_ratio(*texts)


def may_mean(said: str, description: str) -> bool:
    """Whether the words are alike enough and in one order. What only one of the two has may be no negation;
    where each has words of its own they must be forms of each other, and neither names nor numbers."""
    asked, there = _words(said), _words(description)
    own, others = _beyond(asked, there), _beyond(there, asked)
    if likeness(said, description) < SURE or any(word.negates for word in (*own, *others)):
        return False
    if own and others and not _are_forms(own, others):
        return False
    faces = {emoji_of(text) for text in (said, description)} - {()}
    common = [[w.key for w in words if w not in beyond] for words, beyond in ((asked, own), (there, others))]
    return common[0] == common[1] and len(faces) < 2


def _words(text: str) -> tuple[Word, ...]:
    """The words; the first is no name, whatever its capital."""
    words = words_of(text)
    return (Word(words[0].key, words[0].key), *words[1:]) if words else ()


def _beyond(words: Sequence[Word], others: Sequence[Word]) -> list[Word]:
    known = {word.key for word in others}
    return [word for word in words if word.key not in known]


def _are_forms(own: Sequence[Word], others: Sequence[Word]) -> bool:
    """Whether each word begins as one of the others does: "call", "called"."""
    pairs = [sorted((one, other), key=lambda word: len(word.key)) for one in own for other in others]
    forms = [pair for pair in pairs if len(pair[0].key) > 2 and pair[1].key.startswith(pair[0].key)]
    formed = {word for pair in forms for word in pair if not (word.capital or word.number)}
    return formed.issuperset((*own, *others))


@lru_cache(maxsize=1024)
def telling_words(text: str) -> frozenset[int]:
    """Hashes of the words as the index splits them: without English stop words and endings, in any script."""
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()


def bare_id(id: Any) -> Any:
    """The id in "[task 1a2b3c4d]", which the prompt shows, or in a part of it. None if it is blank or "null".
    A value that is no text is returned unchanged."""
    if not isinstance(id, str):
        return id
    found = _SHOWN.fullmatch(id.strip())
    bare = found[1] if found else id.strip()
    return None if bare.lower() in {"", "null", "none", "new"} else bare
