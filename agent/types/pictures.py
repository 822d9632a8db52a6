"""Descriptions of a message's pictures, in one line at the end of its text."""

import re

from memory.text import one_line, readable

LONGEST = 300
"""The most characters of a description."""
_LINE = re.compile(r"(?:\A|\n)\[the picture shows: [^\n]*\]\Z")


def with_description(text: str, description: str) -> str:
    """Return the text with this description in place of any earlier one."""
    shown = one_line(readable(description))[:LONGEST].strip()
    text = without_description(text)
    return f"{text}\n[the picture shows: {shown}]".lstrip("\n") if shown else text


def without_description(text: str) -> str:
    return _LINE.sub("", text)


def description_in(text: str) -> str:
    """Return the line that describes pictures; empty if there is none."""
    line = _LINE.search(text)
    return line[0].strip("\n") if line else ""
