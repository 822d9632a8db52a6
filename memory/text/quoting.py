"""Quote people and documents for a model, and shorten ids for it.

No line of a quotation can be taken for ours or another person's: a name ends at its colon and contains none,
further lines are indented or marked, and every character that may end a line counts as a line break.
"""

import re
import unicodedata
from collections.abc import Collection, Set

from memory.text import one_line, readable
from memory.text.names import spelled

LONGEST_NAME = 80
"""Characters of a display name that are shown."""
NOBODY = "someone"
COMPANION = "hachi"
"""The author of the companion's own messages."""

_COLONS = re.compile("[:\u0589\u05c3\u02d0\u02f8\u205a\u2236\ua4fd\ua789\ufe13\ufe30\ufe55\uff1a]")
"""Every character that looks like a colon."""
_MARKS = " ~…=>#*•-"
"""Our own lines begin with these marks, such as those around a found message."""
_BLANKS = "\u034f\u115f\u1160\u2800\u3164\uffa0"
"""Invisible characters that Unicode classes as letters and signs."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that are part of Persian names and emoji."""


def speaker(name: str) -> str:
    """Return a display name on one line, without colons, quotation marks and invisible characters; never the
    companion's."""
    apart = {*_BLANKS, *(c for c in name if unicodedata.category(c) == "Cf" and c not in _JOINERS)}
    visible = "".join(c for c in name if c not in apart)
    shown = one_line(_COLONS.sub(" ", visible)).replace('"', "'").strip(_MARKS)
    if not any(c.isprintable() and not c.isspace() and c not in _JOINERS for c in shown):
        return NOBODY
    shown = f"{shown} (a person)" if spelled(shown) == COMPANION else shown
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1].rstrip()}…"


def spoken(name: str, text: str, role: str = "user", where: str = "") -> str:
    """Return a message after its author's name, further lines indented: ``Ana: yes`` and `` and no``.
    `where` stands before the colon."""
    who = COMPANION if role == "assistant" else speaker(name)
    return indented(f"{who}{_COLONS.sub(' ', where)}: {text}")


def indented(text: str) -> str:
    """Return a text with all lines but the first indented."""
    return "\n  ".join(text.splitlines())


def numbered(number: int, name: str, text: str) -> str:
    """Return a message on one line with a number to cite it by: ``(3) "Ana": yes / and no``."""
    return f'({number}) "{speaker(name)}": {joined(text)}'


def joined(text: str) -> str:
    """Return a text on one line, without straight quotation marks."""
    return " / ".join(filter(None, map(one_line, text.splitlines()))).replace('"', "”")


def quoted(text: str) -> str:
    """Return a text with ``> `` before each line."""
    return "\n".join(f"> {readable(line)}".rstrip() for line in text.splitlines())


SHORT_ID = 8
_WHOLE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BRACKETS = re.compile(r"^[\s\[(#<]*(?:(?:memory|fact|id)\b[\s:#]*)?|[\s\])>.]*$", re.IGNORECASE)


def short_ids(ids: Collection[str]) -> dict[str, str]:
    """Shorten each id to a unique prefix of `SHORT_ID` characters or more."""
    return {id: _beginning(id, [other for other in ids if other != id]) for id in ids}


def names_any(text: str, ids: Set[str]) -> bool:
    """Return whether the text contains one of these whole ids."""
    return not ids.isdisjoint(_WHOLE.findall(text))


def read_id(written: str) -> str:
    """Return the id in a model's text, such as "[1a2b3c4d]" or "id 1a2b3c4d"."""
    return _BRACKETS.sub("", written).lower()


def _beginning(id: str, others: Collection[str]) -> str:
    length = SHORT_ID
    while length < len(id) and any(other.startswith(id[:length]) for other in others):
        length += 1
    return id[:length]
