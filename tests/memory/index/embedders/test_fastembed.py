"""Models run locally: a small one stands in for those that would be downloaded."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders.fastembed import FastEmbedder
from memory.index.embedders.thresholds import CAUTIOUS


class LetterCounts:
    """Three dimensions: how many a, b and c a text has."""

    read: list[str]

    def __init__(self, name: str) -> None:
        if name != "letters":
            raise ValueError(f"Model {name} is not supported\nin TextEmbedding")

    def embed(self, documents: list[str], batch_size: int = 256) -> Iterator["np.typing.NDArray[np.float64]"]:
        self.read += documents
        for text in documents:
            yield np.array([text.count(letter) for letter in "abc"], dtype=np.float64)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """fastembed as if it were installed; the texts its models have read."""
    LetterCounts.read = []
    monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(TextEmbedding=LetterCounts))
    return LetterCounts.read


async def test_texts_become_unit_vectors_and_blank_ones_zeros(read: list[str]) -> None:
    embedder = await FastEmbedder.open("letters")
    one, blank, two = await embedder.embed(["a", "  ", "abab"])
    assert np.allclose([one, blank, two], [[1, 0, 0], [0, 0, 0], [0.5**0.5, 0.5**0.5, 0]])
    assert one.dtype == np.float32
    assert (embedder.name, embedder.dimension, embedder.thresholds) == ("fastembed:letters", 3, CAUTIOUS)
    assert not (await embedder.embed([""]))[0].any()
    await embedder.close()


async def test_a_missing_model_or_package_is_told(read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"fastembed:other cannot be loaded \(Model other is not"):
        await FastEmbedder.open("other")
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbedderUnavailable, match=r"pip install -e '\.\[fastembed\]' in the clone"):
        await FastEmbedder.open("letters")
