"""Opening an embedder by its name."""

from pathlib import Path

import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import open_embedder
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedders.cache import CachedEmbedder
from memory.index.embedders.openai import OpenAIEmbedder


async def test_the_bundled_one_is_free_and_not_cached() -> None:
    assert isinstance(await open_embedder("bundled"), BundledEmbedder)


async def test_a_paid_one_is_cached_on_disk_if_a_folder_is_given(tmp_path: Path) -> None:
    embedder = await open_embedder("openai:text-embedding-3-small", api_key="k", cache_folder=tmp_path)
    assert isinstance(embedder, CachedEmbedder)
    assert isinstance(embedder.inner, OpenAIEmbedder)
    assert (embedder.name, embedder.dimension) == ("openai:text-embedding-3-small", 1536)
    assert (embedder.thresholds.dedupe, embedder.thresholds.recall) == (0.85, 0.5)
    assert (tmp_path / "embeddings.sqlite3").exists()
    await embedder.close()
    in_memory = await open_embedder("openai:text-embedding-3-large", api_key="k")
    assert in_memory.dimension == 3072
    await in_memory.close()


@pytest.mark.parametrize("name", ["", "bundle", "openai", "openai:", "fastembed:", "cohere:x"])
async def test_an_unknown_name_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        await open_embedder(name)
    assert str(raised.value).startswith(
        f"there is no embedder {name!r}; HACHI_EMBEDDER takes bundled, openai:NAME"
    )
    assert "\n" not in str(raised.value)
