"""Thresholds that are measured, and kept where an embedder is opened."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import open_embedder
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedders.calibration import FILE, calibrate, store_thresholds, stored_thresholds
from memory.index.embedders.thresholds import CAUTIOUS, Thresholds
from memory.index.embedders.vectors import normalised


class Narrow:
    """The bundled embedder, with all vectors so close to each other that unrelated lines are 0.9 alike."""

    name, dimension, thresholds = "narrow", 257, CAUTIOUS

    async def embed(self, texts: Sequence[str]) -> Any:
        return normalised([np.append(vector, 3.0) for vector in await BundledEmbedder().embed(texts)])

    async def close(self) -> None: ...


async def test_thresholds_follow_the_scale_of_the_embedder() -> None:
    wide, narrow = await calibrate(BundledEmbedder()), await calibrate(Narrow())

    for found in (wide, narrow):
        assert found.thresholds.dedupe >= found.different[-1], "no two different lines are taken for the same"
        answers = [cosine >= found.thresholds.recall for cosine in found.answered]
        others = [cosine >= found.thresholds.recall for cosine in found.unanswered]
        assert sum(answers) / len(answers) > 0.8
        assert sum(others) / len(others) < 0.2
    assert wide.thresholds.recall < 0.3
    assert narrow.thresholds.recall > 0.9


async def test_measured_thresholds_are_those_of_the_embedder_of_that_name(tmp_path: Path) -> None:
    assert stored_thresholds(tmp_path, "openai:mine") is None
    store_thresholds(tmp_path, "openai:other", CAUTIOUS)
    store_thresholds(tmp_path, "openai:mine", Thresholds(dedupe=0.9, recall=0.6))

    measured = stored_thresholds(tmp_path, "openai:mine")
    embedder = open_embedder("openai:mine", api_key="k", measured=measured)
    assert embedder.thresholds == Thresholds(dedupe=0.9, recall=0.6)
    assert stored_thresholds(tmp_path, "openai:other") == CAUTIOUS
    assert open_embedder("openai:mistral-embed", api_key="k").thresholds == CAUTIOUS


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(EmbedderUnavailable, match="delete it, and run `hachi embedders calibrate`"):
        stored_thresholds(tmp_path, "openai:mine")
