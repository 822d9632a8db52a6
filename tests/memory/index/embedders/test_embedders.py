"""Opening an embedder by its name."""

import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import open_embedder
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedders.cache import CachedEmbedder
from memory.index.embedders.openai import OpenAIEmbedder


async def test_the_bundled_one_is_free_and_not_cached() -> None:
    assert isinstance(await open_embedder("bundled"), BundledEmbedder)


@pytest.mark.parametrize(
    ("name", "dimension"), [("text-embedding-3-small", 1536), ("text-embedding-3-large", 3072)]
)
async def test_a_paid_one_is_cached(name: str, dimension: int) -> None:
    embedder = await open_embedder(f"openai:{name}", api_key="k")
    assert isinstance(embedder, CachedEmbedder)
    assert isinstance(embedder.inner, OpenAIEmbedder)
    assert (embedder.name, embedder.dimension) == (f"openai:{name}", dimension)
    await embedder.close()


@pytest.mark.parametrize("name", ["", "bundle", "openai", "openai:", "fastembed:", "cohere:x"])
async def test_an_unknown_name_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        await open_embedder(name)
    assert str(raised.value).startswith(
        f"there is no embedder {name!r}; HACHI_EMBEDDER takes bundled, openai:NAME"
    )
    assert "\n" not in str(raised.value)
