"""Short ids: the beginning of an id, enough to name a row to a model or a person."""

import re
from collections.abc import Collection, Set

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
