"""No text is paid for twice."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import CAUTIOUS, cache
from memory.index.embedders.cache import CachedEmbedder


class Paid:
    """Two dimensions, and a bill."""

    thresholds = CAUTIOUS

    def __init__(self, name: str = "paid", dimension: int = 2) -> None:
        self.name = name
        self.dimension = dimension
        self.bill: list[list[str]] = []
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> "list[np.typing.NDArray[np.float32]]":
        self.bill.append(list(texts))
        return [np.array([len(text), 1] + [0] * (self.dimension - 2), dtype=np.float32) for text in texts]

    async def close(self) -> None:
        self.closed = True


async def test_a_text_is_paid_for_once_within_a_batch_and_after() -> None:
    paid = Paid()
    embedder = CachedEmbedder(paid)
    first = await embedder.embed(["a", "bb", "a"])
    second = await embedder.embed(["bb", "ccc", "\ud800"])
    assert paid.bill == [["a", "bb"], ["ccc", "\ud800"]]
    assert [v[0] for v in first + second] == [1, 2, 1, 2, 3, 1]
    assert await embedder.embed([]) == []
    assert len(paid.bill) == 2
    assert (embedder.name, embedder.dimension, embedder.thresholds) == ("paid", 2, CAUTIOUS)


async def test_a_vector_handed_out_cannot_be_spoilt() -> None:
    embedder = CachedEmbedder(Paid())
    (vector,) = await embedder.embed(["a"])
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 9


async def test_the_longest_unused_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * 4 * 2)
    paid = Paid()
    embedder = CachedEmbedder(paid)
    for text in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed([text])
    assert paid.bill == [["a"], ["b"], ["c"], ["b"]]


async def test_what_is_on_disk_is_not_paid_for_again(tmp_path: Path) -> None:
    file, first, second = tmp_path / "deep" / "vectors.sqlite3", Paid(), Paid()
    embedder = CachedEmbedder(first, file)
    (before,) = await embedder.embed(["a"])
    await embedder.close()
    assert first.closed
    (after,) = await CachedEmbedder(second, file).embed(["a"])
    assert second.bill == []
    assert np.array_equal(before, after)


async def test_embedders_do_not_share_vectors(tmp_path: Path) -> None:
    file = tmp_path / "vectors.sqlite3"
    await CachedEmbedder(Paid(), file).embed(["a"])
    for other in (Paid("other"), Paid(dimension=3)):
        await CachedEmbedder(other, file).embed(["a"])
        assert other.bill == [["a"]]


@pytest.mark.parametrize("on_disk", [True, False])
async def test_clearing_forgets_everything(tmp_path: Path, on_disk: bool) -> None:
    file = tmp_path / "vectors.sqlite3" if on_disk else None
    paid = Paid()
    embedder = CachedEmbedder(paid, file)
    (vector,) = await embedder.embed(["a secret"])
    embedder.clear()
    if file:
        await embedder.close()
        assert vector.tobytes() not in file.read_bytes()
        embedder = CachedEmbedder(paid, file)
    await embedder.embed(["a secret"])
    assert paid.bill == [["a secret"], ["a secret"]]


async def test_a_file_that_is_no_database_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "vectors.sqlite3").write_text("garbage " * 1000)
    embedder = CachedEmbedder(Paid(), tmp_path / "vectors.sqlite3")
    assert len(await embedder.embed(["a"])) == 1
    assert "embeddings are not kept" in caplog.text


async def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert len(await CachedEmbedder(Paid(), tmp_path / "file" / "vectors.sqlite3").embed(["a"])) == 1


async def test_a_file_that_breaks_in_use_costs_only_money(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "vectors.sqlite3"
    embedder = CachedEmbedder(Paid(), file)
    with sqlite3.connect(file) as other:
        other.execute("DROP TABLE vectors")
    other.close()
    assert len(await embedder.embed(["a"])) == 1
    assert "could not be read" in caplog.text
    assert "could not be kept" in caplog.text
    with pytest.raises(EmbedderUnavailable, match="could not be cleared"):
        embedder.clear()
