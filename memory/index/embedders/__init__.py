"""Embedders turn texts into vectors. Each has thresholds for the similarity of its vectors.

bundled      in the package: no key, no download
openai:NAME  OpenAI, or any server with the same API
"""

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.process.breaker import Breaker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("hachi.memory")

KNOWN = "bundled, openai:NAME (such as openai:text-embedding-3-small)"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities, 0.0 to 1.0, that are valid for one embedder only."""

    dedupe: float
    """From this similarity on, two texts may say the same thing."""
    recall: float
    """Below this similarity, a text is unrelated to the query in meaning."""


CAUTIOUS = Thresholds(dedupe=0.95, recall=0.3)
"""For an uncalibrated embedder: few texts count as the same. `benchmarks/calibrate.py` measures others."""

THRESHOLDS = {
    "bundled": Thresholds(dedupe=0.94, recall=0.15),
    "openai:text-embedding-3-small": Thresholds(dedupe=0.85, recall=0.5),
}
"""`mistral-embed` is not listed: only its dimension is documented, so it gets the cautious thresholds."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """Return the name that `open_embedder` accepts."""
        ...

    @property
    def dimension(self) -> int:
        """Raise IndexUnavailable while it is unknown: see `embed`."""
        ...

    @property
    def thresholds(self) -> Thresholds: ...

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        """Return a vector of length one for each text, and zeros for a blank one. Ignores text beyond the
        model's limit. A call without texts only determines `dimension`. Raises EmbedderUnavailable."""
        ...

    async def close(self) -> None: ...


async def know_dimension(embedder: Embedder) -> None:
    """Open the embedder if its dimension, which an index needs, is unknown. Raises EmbedderUnavailable."""
    try:
        _ = embedder.dimension
    except IndexUnavailable:
        await embedder.embed([])


async def embed_if_possible(embedder: Embedder, texts: Sequence[str]) -> list[Any]:
    """Return a vector for each text, or None for each while the embedder is unavailable."""
    try:
        return list(await embedder.embed(texts)) if texts else []
    except EmbedderUnavailable as error:
        log.warning("without the embedder only words count: %s", error)
        return [None] * len(texts)


def thresholds_of(embedder: str) -> Thresholds:
    return THRESHOLDS.get(embedder, CAUTIOUS)


def open_embedder(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    breaker: Breaker | None = None,
) -> Embedder:
    """Return the embedder called `name`. It loads nothing before the first text. Raises EmbedderUnavailable
    for an unknown name, or if the key and the URL are missing."""
    kind, _, model = name.partition(":")
    if name == "bundled":
        from memory.index.embedders.bundled import BundledEmbedder

        return BundledEmbedder()
    if not model or kind != "openai":
        raise EmbedderUnavailable(f"there is no embedder {name!r}; HACHI_EMBEDDER takes {KNOWN}")
    if not api_key and not base_url:
        raise EmbedderUnavailable(
            f"the embedder {name} needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server without keys"
        )
    from memory.index.embedders.breakable import BreakableEmbedder
    from memory.index.embedders.openai import DIMENSIONS, OpenAIEmbedder

    def opened() -> Awaitable[Embedder]:
        return OpenAIEmbedder.open(model, api_key=api_key, base_url=base_url)

    breaker = breaker or Breaker("embedder")
    return BreakableEmbedder(name, thresholds_of(name), opened, breaker, DIMENSIONS.get(model))
