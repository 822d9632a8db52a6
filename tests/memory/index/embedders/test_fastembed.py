"""Models run here: with a small model in place of one that would be downloaded."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import CAUTIOUS
from memory.index.embedders.fastembed import FastEmbedder


class LetterCounts:
    """A model of three dimensions: how many a, b and c there are."""

    def __init__(self, name: str) -> None:
        if name != "letters":
            raise ValueError(f"Model {name} is not supported\nin TextEmbedding")
        self.read: list[str] = []

    def embed(self, documents: list[str], batch_size: int = 256) -> Iterator["np.typing.NDArray[np.float64]"]:
        self.read += documents
        for text in documents:
            yield np.array([text.count(letter) for letter in "abc"], dtype=np.float64)


async def test_texts_become_vectors_of_length_one_and_blank_ones_zeros() -> None:
    embedder = await FastEmbedder.open("letters", make=LetterCounts)
    one, blank, two = await embedder.embed(["a", "  ", "abab"])
    assert np.allclose([one, blank, two], [[1, 0, 0], [0, 0, 0], [0.5**0.5, 0.5**0.5, 0]])
    assert one.dtype == np.float32
    assert (embedder.name, embedder.dimension, embedder.thresholds) == ("fastembed:letters", 3, CAUTIOUS)
    assert not (await embedder.embed([""]))[0].any()
    await embedder.close()


async def test_long_and_broken_texts_are_made_readable() -> None:
    made: list[LetterCounts] = []

    def make(name: str) -> LetterCounts:
        made.append(LetterCounts(name))
        return made[-1]

    embedder = await FastEmbedder.open("letters", make=make)
    await embedder.embed(["a" * 1_000_000, "b\ud800"])
    assert [len(text) for text in made[0].read[1:]] == [20_000, 2]
    made[0].read[-1].encode()


async def test_a_model_that_cannot_be_loaded_is_told() -> None:
    with pytest.raises(EmbedderUnavailable, match=r"fastembed:other cannot be loaded \(Model other is not"):
        await FastEmbedder.open("other", make=LetterCounts)


async def test_fastembeds_own_class_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        TextEmbedding = LetterCounts

    monkeypatch.setitem(sys.modules, "fastembed", Installed)
    assert (await FastEmbedder.open("letters")).dimension == 3


async def test_a_missing_package_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbedderUnavailable, match=r"pip install 'hachi\[fastembed\]'"):
        await FastEmbedder.open("letters")
