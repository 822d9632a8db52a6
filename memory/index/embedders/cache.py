"""Caches the vectors of an embedder in memory: a turn embeds the same texts several times."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory.index.embedders import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 16_000_000
"""Bytes of vectors: 15,000 of 256 dimensions, 2,600 of 1,536. Drops the least recently used."""


class CachedEmbedder:
    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.name = inner.name
        self.thresholds = inner.thresholds
        self._recent: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        found = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing or not texts:
            found |= zip(missing, await self.inner.embed(missing), strict=True)
        for text, vector in found.items():
            vector.flags.writeable = False  # several callers share one array
            self._recent[text] = vector
            self._recent.move_to_end(text)
        while len(self._recent) > max(1, MAX_BYTES // (4 * self.dimension)):
            self._recent.popitem(last=False)
        return [found[text] for text in texts]

    def clear(self) -> None:
        """Forget all texts, as when a person is erased."""
        self._recent.clear()

    async def close(self) -> None:
        self.clear()
        await self.inner.close()
