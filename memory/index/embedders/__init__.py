"""Embedders turn texts into vectors; each has thresholds for how similar its vectors must be.

bundled         in the package: no key, no download
openai:NAME     OpenAI, or any server with the same API
fastembed:NAME  a model run locally, downloaded once; `pip install 'hachi[fastembed]'`
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memory.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KNOWN = "bundled, openai:NAME (such as openai:text-embedding-3-small), fastembed:NAME"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities, 0.0 to 1.0, that are valid for one embedder only."""

    dedupe: float
    """From this similarity on, two texts may say the same thing."""
    recall: float
    """Below this similarity, a text is unrelated to the query in meaning."""


CAUTIOUS = Thresholds(dedupe=0.95, recall=0.3)
"""For an uncalibrated embedder: treats few texts as the same and few as unrelated."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """The name that `open_embedder` accepts."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        """A vector of length one for each text, in order. A blank text gets zeros, which are similar to
        nothing. Ignores text beyond the model's limit. Raises EmbedderUnavailable."""
        ...

    async def close(self) -> None: ...


async def open_embedder(name: str, *, api_key: str | None = None, base_url: str | None = None) -> Embedder:
    """The embedder called `name`, ready to use. Raises EmbedderUnavailable."""
    kind, _, model = name.partition(":")
    if name == "bundled":
        from memory.index.embedders.bundled import BundledEmbedder

        return BundledEmbedder()
    if not model or kind not in {"openai", "fastembed"}:
        raise EmbedderUnavailable(f"there is no embedder {name!r}; HACHI_EMBEDDER takes {KNOWN}")

    from memory.index.embedders.cache import CachedEmbedder

    if kind == "openai":
        from memory.index.embedders.openai import OpenAIEmbedder

        return CachedEmbedder(await OpenAIEmbedder.open(model, api_key=api_key, base_url=base_url))
    from memory.index.embedders.fastembed import FastEmbedder

    return CachedEmbedder(await FastEmbedder.open(model))
