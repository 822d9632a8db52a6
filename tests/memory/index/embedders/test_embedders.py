"""Opening an embedder by its name."""

import pytest

from memory.errors import EmbedderUnavailable
from memory.index.embedders import open_embedder
from memory.index.embedders.breakable import BreakableEmbedder
from memory.index.embedders.bundled import BundledEmbedder


async def test_the_bundled_one_is_free_and_not_cached_and_a_paid_one_is() -> None:
    assert isinstance(open_embedder("bundled"), BundledEmbedder)
    for name, dimension in (("text-embedding-3-small", 1536), ("mistral-embed", 1024)):
        embedder = open_embedder(f"openai:{name}", api_key="k")
        assert isinstance(embedder, BreakableEmbedder)
        assert (embedder.name, embedder.dimension) == (f"openai:{name}", dimension)
        await embedder.close()


@pytest.mark.parametrize("name", ["", "bundle", "openai:", "cohere:x"])
async def test_an_unknown_name_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        open_embedder(name)
    assert str(raised.value).startswith(
        f"there is no embedder {name!r}; HACHI_EMBEDDER takes bundled, openai:NAME"
    )
    assert "\n" not in str(raised.value)
