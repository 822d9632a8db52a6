"""Models run locally by fastembed, an optional extra, which downloads a model when it is first opened."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memory.errors import EmbedderUnavailable, how_to_install
from memory.index.embedders.thresholds import CAUTIOUS
from memory.index.embedders.vectors import embed_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES = 20_000
"""The most bytes of a text that are tokenised; these models read about 512 tokens."""
BATCH = 32
"""Texts that the model embeds in one call."""


class FastEmbedder:
    """An embedder that runs locally. Create it with `FastEmbedder.open`."""

    thresholds = CAUTIOUS

    def __init__(self, model: str, loaded: Any, dimension: int) -> None:
        self.name = f"fastembed:{model}"
        self.dimension = dimension
        self._loaded = loaded

    @classmethod
    async def open(cls, model: str) -> "FastEmbedder":
        sizes: list[int] = []

        def measure(loaded: Any) -> None:
            sizes.extend(len(vector) for vector in loaded.embed(["how long is a vector?"], batch_size=1))

        loaded = await asyncio.to_thread(load_model, "fastembed", "TextEmbedding", model, measure)
        return cls(model, loaded, sizes[0])

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        return await embed_texts(texts, self.dimension, MAX_BYTES, self._run)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""

    async def _run(self, texts: list[str]) -> list[Any]:
        return await asyncio.to_thread(lambda: list(self._loaded.embed(texts, batch_size=BATCH)))


def load_model(module: str, kind: str, name: str, probe: Callable[[Any], object] | None = None) -> Any:
    """A model of the given class of fastembed, tested by one call of `probe`. Raises EmbedderUnavailable."""
    try:
        model_class = getattr(import_module(module), kind)
    except ImportError as error:
        raise EmbedderUnavailable(f"fastembed is not installed: {how_to_install('fastembed')}") from error
    try:
        model = model_class(name)
        if probe:
            probe(model)
        return model
    except Exception as error:  # fastembed, its runtime and the download may raise anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EmbedderUnavailable(
            f"fastembed:{name} cannot be loaded ({reason}); choose one of "
            f"{module}.{kind}.list_supported_models()"
        ) from error
