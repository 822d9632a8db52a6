"""The one rule on words: whether a reply of Hachi's contains a fact.

It is used on replies alone. What a person wrote is followed by its id.
"""

import re
from functools import lru_cache

from memory.facts.compare import normalise
from memory.index import bm25

Words = frozenset[int]

_IDENTIFIER = re.compile(
    r"[^\s@<>(),;:\"“”]+@[\w-]+(?:\.[\w-]+)+|https?://[^\s<>()\"“”]+|(?<!\d)\d{4,}(?!\d)"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
FEWEST = 2
"""So few words suffice. Of a shorter fact the names of its teller count too, or else its whole wording:
every reply about a cat has all words of "I have a cat"."""


def repeats(text: str, fact: str, names: str = "") -> bool:
    """Whether the text contains all words of the fact, as the index normalises them, or something that
    identifies it: a number of four digits or more that is no year, or an address. Hachi says "you" instead of
    the `names` of the teller, so these need not be there."""
    return not identifiers_in(fact).isdisjoint(identifiers_in(text)) or has_words_of(text, fact, names)


def has_words_of(text: str, fact: str, names: str = "") -> bool:
    """The same by words alone."""
    wanted, teller = words(fact), words(names)
    if len(wanted - teller) >= FEWEST:
        wanted -= teller
    if len(wanted) >= FEWEST:
        return wanted <= words(text)
    wording = normalise(fact)
    return " " in wording and re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", normalise(text)) is not None


def identifiers_in(text: str) -> frozenset[str]:
    found = (one.casefold().rstrip(".,!?") for one in _IDENTIFIER.findall(text))
    return frozenset(one for one in found if not _YEAR.fullmatch(one))


@lru_cache(maxsize=1024)
def words(text: str) -> Words:
    """The words of a text as the index normalises them, without function words."""
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()
