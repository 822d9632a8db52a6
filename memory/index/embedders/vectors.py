"""Prepare texts for an embedder and normalise its vectors."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.text import storable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def readable(text: str, max_bytes: int) -> str:
    """Return the text without lone surrogates, cut to `max_bytes` of UTF-8 at a whole character."""
    text = storable(text[:max_bytes])  # a character has at least one byte
    return text if text.isascii() else text.encode()[:max_bytes].decode(errors="ignore")


def normalised(rows: Any) -> "list[NDArray[np.float32]]":
    """Return each row scaled to length one; zeros if its length is zero or not finite."""
    vectors = np.asarray(rows, dtype=np.float32)
    if not len(vectors):
        return []
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    return list(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=usable))


def zeros(dimension: int) -> "NDArray[np.float32]":
    return np.zeros(dimension, dtype=np.float32)


async def embed_texts(
    texts: Sequence[str],
    dimension: int,
    max_bytes: int,
    model: Callable[[list[str]], Awaitable[Sequence[Any]]],
) -> "list[NDArray[np.float32]]":
    """Return a normalised vector for each text. Blank texts become zeros, without the model."""
    asked = {at: readable(text, max_bytes) for at, text in enumerate(texts) if text.strip()}
    answers = normalised(await model(list(asked.values()))) if asked else []
    vectors = dict(zip(asked, answers, strict=True))
    return [vectors.get(at, zeros(dimension)) for at in range(len(texts))]
