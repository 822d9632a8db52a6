"""The arguments and the result of a call, as a trace stores them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agent.errors import BadInput
from agent.types.arguments import place_of
from memory.audience import PRIVATE, Place
from memory.text import storable

_SHORT_ID = re.compile(r"[0-9a-f-]{4,36}")
_INNER = ("memory", "task", "document")
"""The fields of a result that may have the row that it is about."""
MOST_TOLD = 100
"""The most items of a list that are stored; an import may have any number."""
_TEXT = "(a text)"
"""Replaces a text that is left out."""


def call_arguments(arguments: Mapping[str, Any], *, texts: bool) -> dict[str, Any]:
    """Return the arguments as JSON, without user and place, which the trace has anyway. Without `texts`,
    texts are left out: only numbers, times and ids remain."""
    left_out = ("self", "user", "place")
    return {name: _told(value, texts) for name, value in arguments.items() if name not in left_out}


def _told(value: Any, texts: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return storable(value) if texts or _SHORT_ID.fullmatch(value) else _TEXT
    if isinstance(value, Mapping):
        return {storable(str(name)): _told(one, texts) for name, one in value.items()}
    if isinstance(value, list | tuple):
        more = [f"({len(value) - MOST_TOLD} more)"] if len(value) > MOST_TOLD else []
        return [_told(one, texts) for one in value[:MOST_TOLD]] + more
    return value.isoformat() if hasattr(value, "isoformat") else f"({type(value).__name__})"


def place_or_private(place: object) -> Place:
    """Return the place; a private conversation if it cannot be read."""
    with suppress(BadInput):
        return place_of(place)
    return PRIVATE


def ids_of(result: object) -> set[str]:
    """Return the ids of the rows that a call created, changed or found."""
    shown = result if isinstance(result, list) else (result, *(getattr(result, one, None) for one in _INNER))
    return {id for one in shown if isinstance(id := getattr(one, "id", None), str)}
