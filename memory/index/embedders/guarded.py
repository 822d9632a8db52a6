"""An embedder that may be away: opened with its first text, and behind a breaker."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index.embedders import Embedder, Thresholds
from memory.process.breaker import ABOUT_THE_REQUEST, Breaker, CircuitOpen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class GuardedEmbedder:
    def __init__(
        self,
        name: str,
        thresholds: Thresholds,
        open: Callable[[], Awaitable[Embedder]],
        breaker: Breaker,
        dimension: int | None = None,
    ) -> None:
        """`dimension` is that of a known model."""
        self.name = name
        self.thresholds = thresholds
        self._open = open
        self._breaker = breaker
        self._known = dimension
        self._opening = asyncio.Lock()
        self._embedder: Embedder | None = None

    @property
    def dimension(self) -> int:
        """Raises IndexUnavailable while it is not known, since without it no index can be opened."""
        if self._known is None:
            raise IndexUnavailable(
                f"the index waits for the embedder {self.name} to say how long its vectors are"
            )
        return self._known

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        """As of any embedder. No texts are embedded without a call, but open it if its dimension is not
        known."""
        if not texts and self._known is not None:
            return []
        try:
            with self._breaker.calling(_blame):
                return await (await self._opened()).embed(texts)
        except CircuitOpen as error:
            raise EmbedderUnavailable(str(error)) from error

    async def close(self) -> None:
        if self._embedder is not None:
            await self._embedder.close()

    async def _opened(self) -> Embedder:
        async with self._opening:
            if self._embedder is None:
                self._embedder = await self._open()
                self._known = self._embedder.dimension
        return self._embedder


def _blame(error: Exception) -> str | None:
    refused = getattr(error.__cause__, "status_code", None) in ABOUT_THE_REQUEST
    return str(error) if isinstance(error, EmbedderUnavailable) and not refused else None
