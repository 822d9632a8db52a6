"""What every embedder does to a text before and to a vector after."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.index.bm25 import sound

if TYPE_CHECKING:
    from numpy.typing import NDArray


def readable(text: str, most_bytes: int) -> str:
    """The text without lone surrogates, cut to `most_bytes` of UTF-8 at a whole character."""
    text = text[:most_bytes]  # a character is a byte at least
    encoded = sound(text).encode()
    return encoded[:most_bytes].decode(errors="ignore")


def normalised(rows: Sequence[Any]) -> "list[NDArray[np.float32]]":
    """Each row at length one; zeros where it has no length or is no number."""
    return [_unit(np.asarray(row, dtype=np.float32)) for row in rows]


def zeros(dimension: int) -> "NDArray[np.float32]":
    return np.zeros(dimension, dtype=np.float32)


def _unit(row: "NDArray[np.float32]") -> "NDArray[np.float32]":
    length = float(np.linalg.norm(row))
    if not np.isfinite(length) or length == 0.0:
        return zeros(len(row))
    return row / np.float32(length)
