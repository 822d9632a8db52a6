"""Embedders turn texts into vectors; each has thresholds for how similar its vectors must be.

bundled         in the package: no key, no download
openai:NAME     OpenAI, or any server with the same API
fastembed:NAME  a model run locally, downloaded once; `pip install 'hachi[fastembed]'`
"""

from pathlib import Path

from memory.errors import EmbedderUnavailable
from memory.index.embedders.embedder import CAUTIOUS, Embedder, Thresholds

__all__ = ["CAUTIOUS", "Embedder", "Thresholds", "open_embedder"]

KNOWN = "bundled, openai:NAME (such as openai:text-embedding-3-small), fastembed:NAME"


async def open_embedder(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    cache_folder: Path | None = None,
) -> Embedder:
    """The embedder called `name`, ready to use. If `cache_folder` is given, the vectors of a paid embedder
    are cached there. Raises EmbedderUnavailable."""
    kind, _, model = name.partition(":")
    if name == "bundled":
        from memory.index.embedders.bundled import BundledEmbedder

        return BundledEmbedder()
    if not model or kind not in {"openai", "fastembed"}:
        raise EmbedderUnavailable(f"there is no embedder {name!r}; HACHI_EMBEDDER takes {KNOWN}")

    from memory.index.embedders.cache import CachedEmbedder

    if kind == "openai":
        from memory.index.embedders.openai import OpenAIEmbedder

        paid = await OpenAIEmbedder.open(model, api_key=api_key, base_url=base_url)
        return CachedEmbedder(paid, cache_folder / "embeddings.sqlite3" if cache_folder else None)
    from memory.index.embedders.fastembed import FastEmbedder

    return CachedEmbedder(await FastEmbedder.open(model))
