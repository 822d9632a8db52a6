"""Embedders turn texts into vectors; each has thresholds for how similar its vectors must be.

bundled         in the package: no key, no download
openai:NAME     OpenAI, or any server with the same API
fastembed:NAME  a model run locally, downloaded once; `pip install 'hachi[fastembed]'`
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
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
    """From here on two texts may say the same thing."""
    recall: float
    """Below this a text is unrelated to the query in meaning."""


CAUTIOUS = Thresholds(dedupe=0.95, recall=0.3)
"""For an embedder nobody has calibrated: treats few texts as the same and few as unrelated."""


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """As `open_embedder` takes it."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        """A vector of length one for each text, in order; all zeros for a blank text, similar to nothing.
        Text beyond the model's limit is ignored. Raises EmbedderUnavailable."""
        ...

    async def close(self) -> None: ...


async def open_embedder(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    cache_folder: Path | None = None,
) -> Embedder:
    """The embedder called `name`, ready to use. Answers of a paid one are cached in `cache_folder`, if given.
    Raises EmbedderUnavailable."""
    kind, _, model = name.partition(":")
    if name == "bundled":
        from memory.index.embedders.bundled import BundledEmbedder

        return BundledEmbedder()
    if not model or kind not in {"openai", "fastembed"}:
        raise EmbedderUnavailable(f"there is no embedder {name!r}; HACHI_EMBEDDER takes {KNOWN}")

    from memory.index.embedders.cache import CachedEmbedder

    if kind == "openai":
        from memory.index.embedders.openai import OpenAIEmbedder

        paid = await OpenAIEmbedder.open(model, api_key=api_key, base_url=base_url)
        return CachedEmbedder(paid, cache_folder / "embeddings.sqlite3" if cache_folder else None)
    from memory.index.embedders.fastembed import FastEmbedder

    return CachedEmbedder(await FastEmbedder.open(model))
