"""The embedder inside the package: wordllama, 256 dimensions, no key and no network.

A text's vector is the mean of its tokens': about 0.02 ms for a line, and blind to the order of words. The
weights take 33 MB and 0.4 s to load, which the first text pays, beside the event loop.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import EmbedderUnavailable
from memory.index.embedders import Thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST = 20_000
"""Bytes that are read of one text: its mean has long settled."""
_INLINE = 2_000
"""Characters embedded on the event loop, in under 1 ms; more go to a thread."""


class BundledEmbedder:
    """Calibrated by measuring.

    `dedupe`: over 140 pairs of facts in English, French and Hebrew, the lowest at which none that differ in
    attribute or contradict each other (0 of 42, the highest at 0.933) counts as the same, with 11 of the 54
    that do say the same; names, numbers and dates are compared apart, this embedder cannot.

    `recall`: over 759 questions on five LoCoMo conversations, where the shares of evidence (0.76) and of
    other messages (0.29) at or above it lie furthest apart."""

    name = "bundled"
    dimension = 256
    thresholds = Thresholds(dedupe=0.94, recall=0.15)

    def __init__(self) -> None:
        self._model: Any = None
        self._loading = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        if self._model is None:
            async with self._loading:
                if self._model is None:
                    self._model = await asyncio.to_thread(_load)
        if sum(map(len, texts)) <= _INLINE:
            return self._vectors(texts)
        return await asyncio.to_thread(self._vectors, texts)

    async def close(self) -> None:
        self._model = None

    def _vectors(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        from memory.index.embedders.vectors import normalised

        return normalised([self._mean(text) for text in texts])

    def _mean(self, text: str) -> "NDArray[np.float32]":
        from memory.index.embedders.vectors import readable, zeros

        # One at a time: in a batch the tokenizer would pad every text to the longest.
        known = readable(text, LONGEST) if text.strip() else ""
        tokens = self._model.tokenizer.encode(known, add_special_tokens=False).ids
        if not tokens:
            return zeros(self.dimension)
        mean: NDArray[np.float32] = self._model.embedding[tokens].mean(axis=0)
        return mean


def _load() -> Any:
    # wordllama sets up the root logger when imported, which it leaves be where there is a handler.
    ours = logging.NullHandler()
    logging.root.addHandler(ours)
    try:
        import wordllama
    finally:
        logging.root.removeHandler(ours)
    folder = Path(wordllama.__file__).parent  # where its tokenizer is; it looks elsewhere by itself
    try:
        return wordllama.WordLlama.load(
            cache_dir=folder, dim=BundledEmbedder.dimension, disable_download=True
        )
    except FileNotFoundError as error:
        raise EmbedderUnavailable(
            f"the bundled embedder's files are missing ({error}); `pip install --force-reinstall wordllama`"
        ) from error
