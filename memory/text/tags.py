"""Tags of memories: flat, without case, in one Unicode form."""

import unicodedata
from collections.abc import Iterable


def tag(text: str) -> str:
    """The form in which a tag is stored and searched for; empty if the text holds none."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).strip()


def tags(texts: Iterable[str]) -> tuple[str, ...]:
    """The tags, each once, in order."""
    return tuple(dict.fromkeys(found for text in texts if (found := tag(text))))
