"""Wrap an embedder that may fail or costs money: open it with the first text, behind a breaker, with a
cache."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index.embedders import Embedder, Thresholds
from memory.process.breaker import ABOUT_THE_REQUEST, Breaker, CircuitOpen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = list[NDArray[np.float32]]

MAX_BYTES = 16_000_000
"""Bytes of cached vectors: 15,000 of 256 dimensions, 2,600 of 1,536. The least recently used are dropped."""


class BreakableEmbedder:
    def __init__(
        self,
        name: str,
        thresholds: Thresholds,
        open: Callable[[], Awaitable[Embedder]],
        breaker: Breaker,
        dimension: int | None = None,
    ) -> None:
        """`open` is called on first use. `dimension` is that of a known model."""
        self.name = name
        self.thresholds = thresholds
        self._open = open
        self._breaker = breaker
        self._known = dimension
        self._opening = asyncio.Lock()
        self._embedder: Embedder | None = None
        self._recent: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def dimension(self) -> int:
        """Raise IndexUnavailable while it is unknown, because no index can be opened without it."""
        if self._known is None:
            raise IndexUnavailable(
                f"the index waits for the embedder {self.name} to say how long its vectors are"
            )
        return self._known

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Embed texts. Without texts, only open the embedder, if its dimension is unknown."""
        found = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing or self._known is None:
            found |= zip(missing, await self._asked(missing), strict=True)
        for text, vector in found.items():
            vector.flags.writeable = False  # several callers share one array
            self._recent[text] = vector
            self._recent.move_to_end(text)
        while len(self._recent) > max(1, MAX_BYTES // (4 * self.dimension)):
            self._recent.popitem(last=False)
        return [found[text] for text in texts]

    def clear(self) -> None:
        """Empty the cache, when a person is erased."""
        self._recent.clear()

    async def close(self) -> None:
        self.clear()
        if self._embedder is not None:
            await self._embedder.close()

    async def _asked(self, texts: list[str]) -> "Vectors":
        try:
            with self._breaker.calling(_blame):
                async with self._opening:
                    if self._embedder is None:
                        self._embedder = await self._open()
                        self._known = self._embedder.dimension
                return await self._embedder.embed(texts)
        except CircuitOpen as error:
            raise EmbedderUnavailable(str(error)) from error


def _blame(error: Exception) -> str | None:
    refused = getattr(error.__cause__, "status_code", None) in ABOUT_THE_REQUEST
    return str(error) if isinstance(error, EmbedderUnavailable) and not refused else None
