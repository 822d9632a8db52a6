"""Embed with wordllama, in the package: 256 dimensions, no key and no network.

A vector is the mean of its tokens' vectors: some 0.02 ms a line, blind to word order. The weights take 33 MB;
the first text loads them in 0.4 s, in a thread.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import EmbedderUnavailable
from memory.index.embedders.thresholds import thresholds_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 20_000
"""The most bytes of a text that are embedded: more hardly change its mean."""
_LINE = re.compile(r"(?=\n)")
"""Before each line but the first."""
_INLINE = 2_000
"""Up to this many characters are embedded on the event loop, in under 1 ms. Longer texts go to a thread."""


class BundledEmbedder:
    """The embedder, whose thresholds were measured.

    `dedupe`: over 140 pairs of facts in English, French and Hebrew, the lowest that none of the 42 pairs with
    different values reaches (the highest has 0.933); 11 of the 54 that say the same do. It cannot tell names,
    numbers and dates apart. `recall`: over 759 questions on five LoCoMo conversations, where the share of the
    evidence that reaches it (0.76) and of other messages (0.29) are furthest apart.
    """

    name = "bundled"
    dimension = 256
    thresholds = thresholds_of(name)

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
        """Return the vectors. Each line is read once, since windows share most of theirs. With the line break
        before it, it has the tokens that it has in the text, after one that begins any text."""
        from memory.index.embedders.vectors import normalised, readable, zeros  # numpy, needed only now

        known = [readable(text, MAX_BYTES).lstrip("\n") if text.strip() else "" for text in texts]
        lines = [_LINE.split(text) for text in known]
        parts = list({line: None for of_text in lines for line in of_text})
        encoded = self._model.tokenizer.encode_batch_fast(parts, add_special_tokens=False)
        ids = (one.ids[line.startswith("\n") :] for line, one in zip(parts, encoded, strict=True))
        sums = {
            line: self._model.embedding[of].sum(axis=0) for line, of in zip(parts, ids, strict=True) if of
        }
        nothing = zeros(self.dimension)
        return normalised([sum((sums[line] for line in of if line in sums), nothing) for of in lines])


def _load() -> Any:
    # Importing wordllama configures the root logger, unless it has a handler.
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        import wordllama
    finally:
        logging.root.removeHandler(handler)
    folder = Path(wordllama.__file__).parent  # by default wordllama looks for the tokenizer elsewhere
    try:
        model = wordllama.WordLlama.load(
            cache_dir=folder, dim=BundledEmbedder.dimension, disable_download=True
        )
    except FileNotFoundError as error:
        raise EmbedderUnavailable(
            f"the bundled embedder's files are missing ({error}); `pip install --force-reinstall wordllama`"
        ) from error
    model.tokenizer.no_padding()  # else every text of a batch is as long as the longest
    # It would keep the last 10,000 words that people said, 2 kB each, and is no faster with them.
    model.tokenizer.model._resize_cache(0)
    return model
