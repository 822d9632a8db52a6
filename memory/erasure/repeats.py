"""The one rule on words: whether a reply of Hachi's contains a fact.

It is used on replies and on what is recorded of them. What a person wrote is followed by its id.
"""

import re
from collections.abc import Iterable

from memory.erasure.repetition import NO_WORDS, FactWords, Words, words
from memory.facts.compare import normalise

_IDENTIFIER = re.compile(
    r"[^\s@<>(),;:\"“”]+@[\w-]+(?:\.[\w-]+)+|https?://[^\s<>()\"“”]+|(?<!\d)\d{4,}(?!\d)"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
FEWEST = 2
"""So few words suffice. Of a shorter fact the names of its teller count too, or else its whole wording:
every reply about a cat has all words of "I have a cat"."""


def repeats(text: str, fact: str, teller: Words = NO_WORDS) -> bool:
    """Whether the text contains all words of the fact, as the index normalises them, or something that
    identifies it: a number of four digits or more that is no year, or an address. Hachi says "you" instead of
    the names of the `teller`, so these need not be there."""
    if not identifiers_in(fact).isdisjoint(identifiers_in(text)):
        return True
    wanted = words(fact)
    if len(wanted - teller) >= FEWEST:
        wanted -= teller
    if len(wanted) >= FEWEST:
        return wanted <= words(text)
    wording = normalise(fact)
    return " " in wording and re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", normalise(text)) is not None


def identifiers_in(text: str) -> frozenset[str]:
    found = (one.casefold().rstrip(".,!?") for one in _IDENTIFIER.findall(text))
    return frozenset(one for one in found if not _YEAR.fullmatch(one))


def repeated_by_task(description: str, told: Iterable[str], teller: Words) -> bool:
    """Whether one of these texts states the task, or Hachi noted one of them as the task."""
    task = FactWords.of(description, teller)
    return any(task.stated_by(text) or repeats(description, text, teller) for text in told)
