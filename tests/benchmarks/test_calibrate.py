"""The thresholds that are measured follow the scale of the embedder."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from memory.index.embedders import CAUTIOUS
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedders.vectors import normalised


class Narrow:
    """The bundled embedder, with all vectors so close to each other that unrelated lines are 0.9 alike."""

    name, dimension, thresholds = "narrow", 257, CAUTIOUS

    async def embed(self, texts: Sequence[str]) -> Any:
        return normalised([np.append(vector, 3.0) for vector in await BundledEmbedder().embed(texts)])

    async def close(self) -> None: ...


async def test_thresholds_follow_the_scale_of_the_embedder(script: Callable[[str], ModuleType]) -> None:
    calibrate = script("calibrate").calibrate
    wide, narrow = await calibrate(BundledEmbedder()), await calibrate(Narrow())

    for thresholds, found in (wide, narrow):
        assert thresholds.dedupe >= found["different"][-1], "no two different lines are taken for the same"
        answers = [cosine >= thresholds.recall for cosine in found["answered"]]
        others = [cosine >= thresholds.recall for cosine in found["unanswered"]]
        assert sum(answers) / len(answers) > 0.8
        assert sum(others) / len(others) < 0.2
    assert wide[0].recall < 0.3
    assert narrow[0].recall > 0.9
