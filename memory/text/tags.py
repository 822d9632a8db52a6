"""Tags of memories: flat, without case, in one Unicode form."""

import unicodedata
from collections.abc import Iterable

from memory.text import storable

LONGEST = 200
"""Characters of a tag; further ones are cut off. PostgreSQL indexes no long texts."""


def tag(text: str) -> str:
    """The form in which a tag is stored and searched for; empty if the text holds none."""
    folded = unicodedata.normalize("NFC", storable(text)).casefold()
    return unicodedata.normalize("NFC", folded).strip()[:LONGEST].rstrip()


def tags(texts: Iterable[str]) -> tuple[str, ...]:
    """The tags, each once, in order."""
    return tuple(dict.fromkeys(found for text in texts if (found := tag(text))))
