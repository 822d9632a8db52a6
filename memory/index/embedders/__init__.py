"""Embedders: a text becomes a vector, and each embedder says how alike its vectors must be to count.

bundled         in the package: no key, no download
openai:NAME     OpenAI, or any server with the same API
fastembed:NAME  a model run here, downloaded once; `pip install 'hachi[fastembed]'`
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
    """Cosine similarities, 0.0 to 1.0, that hold for one embedder alone."""

    dedupe: float
    """From here on two texts may say the same thing."""
    recall: float
    """Below this a text has nothing to do with the question, as far as meaning goes."""


CAUTIOUS = Thresholds(dedupe=0.95, recall=0.3)
"""For an embedder nobody has calibrated: takes few texts for the same, and leaves few out."""


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
        """A vector of length one for each text, in order; of a blank text all zeros, which resembles
        nothing. Text beyond what the model reads is left out. Raises `EmbedderUnavailable`."""
        ...

    async def close(self) -> None: ...


async def open_embedder(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    cache_folder: Path | None = None,
) -> Embedder:
    """The embedder called `name`, ready to use.

    What a paid one answered is kept in `cache_folder`, if given, so that no text is paid for twice. One
    whose dimension is not known is asked for a first vector. Raises `EmbedderUnavailable`."""
    kind, _, model = name.partition(":")
    if name == "bundled":
        from memory.index.embedders.bundled import BundledEmbedder

        return BundledEmbedder()
    if kind == "openai" and model:
        from memory.index.embedders.cache import CachedEmbedder
        from memory.index.embedders.openai import OpenAIEmbedder

        paid = await OpenAIEmbedder.open(model, api_key=api_key, base_url=base_url)
        return CachedEmbedder(paid, cache_folder / "embeddings.sqlite3" if cache_folder else None)
    if kind == "fastembed" and model:
        from memory.index.embedders.cache import CachedEmbedder
        from memory.index.embedders.fastembed import FastEmbedder

        return CachedEmbedder(await FastEmbedder.open(model))
    raise EmbedderUnavailable(f"there is no embedder {name!r}; HACHI_EMBEDDER takes {KNOWN}")
