"""Make text fit to be stored or shown: the one module that handles surrogates and control characters."""

import re
import unicodedata
from collections.abc import Iterable

LONGEST_TAG = 200
"""Characters of a tag; the rest is cut off, because PostgreSQL cannot index long texts."""

LINK = "hachi-link-"
"""The prefix of the token in a link to a person's pages."""
_LINK = re.compile(rf"(?:\?link=)?{LINK}[\w.-]+")

# "\r\n", an ANSI escape sequence, or one character that no text needs. Tabs and newlines stay.
_CONTROLS = re.compile(
    r"\r\n?|\x1b\[[0-?]{0,32}[ -/]{0,4}[@-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029]"
)
_STOPS = "。｡！？।॥።။។"
"""Marks that end a sentence without a space."""
_CLOSING_QUOTES = "」』”’）】"
_SENTENCE_END = re.compile(
    r"(?<=[.!?…][\"'”’»)\]])\s+|(?<=[.!?…؟۔։])\s+"
    rf"|(?<=[{_STOPS}])(?![{_STOPS}{_CLOSING_QUOTES}])\s*|(?<=[。！？][{_CLOSING_QUOTES}])\s*"
    r"|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+"
)
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    """Return the text without fenced code; the whole text if there is nothing else."""
    if "```" not in text and "~~~" not in text:
        return text
    return _FENCED.sub(" ", text).strip() or text


def storable(text: str) -> str:
    """Drop NUL, which PostgreSQL refuses, join surrogate pairs, and replace lone surrogates by U+FFFD."""
    text = text.replace("\x00", "")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_links(text: str) -> str:
    """Drop the tokens of links to a person's pages, which must not be stored, traced or sent to a model."""
    return _LINK.sub("", text) if LINK in text else text


def is_single_line(text: str) -> bool:
    """Return whether the text can be a name: one line that is not blank and can be stored as it is."""
    return text == storable(text) and len(text.strip().splitlines()) == 1


def without_surrogates(text: str) -> str:
    """Drop lone surrogates and join pairs; NUL stays."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def readable(text: str) -> str:
    """Return the text for display, on several lines: no control characters, no surrogates."""
    return _CONTROLS.sub(
        lambda found: "\n" if found[0][0] in "\r\u2028\u2029" else "", without_surrogates(text)
    )


def one_line(text: str) -> str:
    """Return the text in NFC on a single line, without control characters and surrogates."""
    shown = "".join(c for c in without_surrogates(text) if c.isspace() or unicodedata.category(c) != "Cc")
    return unicodedata.normalize("NFC", " ".join(shown.split()))


def sentences(text: str) -> list[str]:
    """Split a text of any script into sentences. One ends at its mark and a space, or with its line; an
    abbreviation may end one too early."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]


def tag(text: str) -> str:
    """Return the normalized form of a tag, which is stored and searched for; empty if nothing is left."""
    folded = unicodedata.normalize("NFC", storable(text)).casefold()
    return unicodedata.normalize("NFC", folded).strip()[:LONGEST_TAG].rstrip()


def tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the tags, each once, in order."""
    return tuple(dict.fromkeys(found for text in texts if (found := tag(text))))
