"""Describe the pictures of a message in its text, in one line at its end."""

import re

from memory.text import one_line, readable

LONGEST = 300
"""Characters of a description."""
_LINE = re.compile(r"(?:\A|\n)\[the picture shows: [^\n]*\]\Z")


def with_description(text: str, description: str) -> str:
    """Return the text with this description, in place of the one that it has."""
    shown = one_line(readable(description))[:LONGEST].strip()
    text = without_description(text)
    return f"{text}\n[the picture shows: {shown}]".lstrip("\n") if shown else text


def without_description(text: str) -> str:
    return _LINE.sub("", text)


def description_in(text: str) -> str:
    """Return the line that describes pictures; empty if there is none."""
    line = _LINE.search(text)
    return line[0].strip("\n") if line else ""
