"""Opening an embedder by its name."""

from pathlib import Path

import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import open_embedder
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedders.cache import CachedEmbedder
from memory.index.embedders.fastembed import FastEmbedder
from memory.index.embedders.openai import OpenAIEmbedder


async def test_the_bundled_one_is_free_and_not_cached() -> None:
    assert isinstance(await open_embedder("bundled"), BundledEmbedder)


async def test_a_paid_one_is_cached_in_the_folder_given(tmp_path: Path) -> None:
    embedder = await open_embedder("openai:text-embedding-3-small", api_key="k", cache_folder=tmp_path)
    assert isinstance(embedder, CachedEmbedder)
    assert isinstance(embedder.inner, OpenAIEmbedder)
    assert embedder.name == "openai:text-embedding-3-small"
    assert embedder.dimension == 1536
    assert (embedder.thresholds.dedupe, embedder.thresholds.recall) == (0.85, 0.5)
    assert (tmp_path / "embeddings.sqlite3").exists()
    await embedder.close()


async def test_a_paid_one_without_a_folder_is_cached_in_memory() -> None:
    embedder = await open_embedder("openai:text-embedding-3-large", api_key="k")
    assert embedder.dimension == 3072
    await embedder.close()


async def test_a_local_one_is_cached_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def embed(self, documents: list[str], batch_size: int) -> list[list[float]]:
            return [[1.0, 0.0] for _ in documents]

    monkeypatch.setattr("memory.index.embedders.fastembed._fastembed", lambda: lambda name: Model())
    embedder = await open_embedder("fastembed:some/model")
    assert isinstance(embedder, CachedEmbedder)
    assert isinstance(embedder.inner, FastEmbedder)
    assert (embedder.name, embedder.dimension) == ("fastembed:some/model", 2)


@pytest.mark.parametrize("name", ["", "bundle", "openai", "openai:", "fastembed:", "cohere:x"])
async def test_an_unknown_one_is_told_with_what_there_is(name: str) -> None:
    with pytest.raises(EmbedderUnavailable) as told:
        await open_embedder(name)
    assert str(told.value).startswith(
        f"there is no embedder {name!r}; HACHI_EMBEDDER takes bundled, openai:NAME"
    )
    assert "\n" not in str(told.value)
