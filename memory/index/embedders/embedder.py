"""The interface of an embedder, and its thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
