"""Provider data that must be sent back within a turn, recognised by its fields and not by the model's name.

A message's own fields (`reasoning_content`, `reasoning_details`, signatures) travel with a reasoning item
before it, and a call's with the call, both as `provider_data`. The SDK passes items on unchanged, and a trace
has them.
"""

import re
from collections.abc import Mapping
from typing import Any

_WANTED_BACK = re.compile(r"reason|think|thought|signature|extra_content|provider_specific", re.IGNORECASE)
_WHOLE = frozenset({"type", "index", "id", "format", "role", "name"})
"""Fields that a stream repeats whole; others come in pieces."""


def wanted_back(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those fields of a message, a piece of one, or a call that must be sent back with it."""
    return {name: value for name, value in fields.items() if value and _WANTED_BACK.search(name)}


def merged(before: Any, piece: Any) -> Any:
    """Return a streamed field with its next piece: texts joined, objects by field, lists by `index`."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, dict) and isinstance(piece, dict):
        joined = {
            name: value if name in _WHOLE or name not in before else merged(before[name], value)
            for name, value in piece.items()
        }
        return {**before, **joined}
    if isinstance(before, list) and isinstance(piece, list):
        return _merged_lists(before, piece)
    return before if piece is None else piece


def _merged_lists(before: list[Any], pieces: list[Any]) -> list[Any]:
    """Return the blocks with the pieces added. A piece continues the last block unless that has a signature,
    another type or another index."""
    result = list(before)
    for piece in pieces:
        last = result[-1] if result else None
        if isinstance(last, dict) and isinstance(piece, dict) and _goes_on(last, piece):
            result[-1] = merged(last, piece)
        else:
            result.append(piece)
    return result


def _goes_on(block: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    same = all(block.get(name) == piece.get(name, block.get(name)) for name in ("type", "index"))
    return same and not block.get("signature")


def thoughts_in(fields: Mapping[str, Any]) -> str:
    """Return the text of a model's thoughts, if the server separates them from the answer."""
    texts = (fields.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return next((text for text in texts if isinstance(text, str)), "")
