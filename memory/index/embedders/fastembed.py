"""Models run on this machine by fastembed, an optional extra. A model is downloaded when first opened."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from memory.errors import EmbedderUnavailable
from memory.index.embedders import CAUTIOUS
from memory.index.embedders.vectors import normalised, readable, zeros

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST = 20_000
"""Bytes that are tokenised of one text; these models read 512 tokens or so."""
BATCH = 32
"""Texts that go through the model together."""


class Model(Protocol):
    """The part of `fastembed.TextEmbedding` that is used."""

    def embed(self, documents: list[str], batch_size: int = ...) -> Iterable[Any]: ...


class FastEmbedder:
    """Made by `FastEmbedder.open`."""

    thresholds = CAUTIOUS

    def __init__(self, model: str, running: Model, dimension: int) -> None:
        self.name = f"fastembed:{model}"
        self.dimension = dimension
        self._running = running

    @classmethod
    async def open(cls, model: str, *, make: Callable[[str], Model] | None = None) -> "FastEmbedder":
        """`make` builds the model from its name; fastembed's own class where it is not given."""
        build = make or _fastembed()
        try:
            running = await asyncio.to_thread(build, model)
            (first,) = await asyncio.to_thread(_run, running, ["how long is a vector?"])
        except Exception as error:  # whatever fastembed, its runtime or the download raises
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise EmbedderUnavailable(
                f"the embedder fastembed:{model} cannot be loaded ({reason}); choose one of "
                "fastembed.TextEmbedding.list_supported_models() in HACHI_EMBEDDER"
            ) from error
        return cls(model, running, len(first))

    async def embed(self, texts: Sequence[str]) -> "list[NDArray[np.float32]]":
        asked = [at for at, text in enumerate(texts) if text.strip()]
        vectors = [zeros(self.dimension) for _ in texts]
        if asked:
            wanted = [readable(texts[at], LONGEST) for at in asked]
            answers = await asyncio.to_thread(_run, self._running, wanted)
            for at, vector in zip(asked, normalised(answers), strict=True):
                vectors[at] = vector
        return vectors

    async def close(self) -> None:
        """Nothing to let go of."""


def _run(running: Model, texts: list[str]) -> list[Any]:
    return list(running.embed(texts, batch_size=BATCH))


def _fastembed() -> Callable[[str], Model]:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise EmbedderUnavailable(
            "embedders of fastembed are not installed: pip install 'hachi[fastembed]'"
        ) from error
    make: Callable[[str], Model] = TextEmbedding
    return make
