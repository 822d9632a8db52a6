"""Opens an index: embedded in a folder, or a collection on a Qdrant server."""

from dataclasses import dataclass
from pathlib import Path

from memory.index import Index, fingerprint_of
from memory.index.embedders import Embedder


@dataclass(frozen=True)
class QdrantServer:
    url: str
    key: str | None


async def open_index(
    folder: Path, server: QdrantServer | None, collection: str, embedder: Embedder, rebuild: bool
) -> Index:
    """Open the `collection` of the server, or the index in `folder` if no server is set; with `rebuild` it is
    emptied. Raises IndexUnavailable."""
    fingerprint = fingerprint_of(embedder.name, embedder.dimension)
    if server is not None:
        from memory.index.server import ServerIndex

        index = await ServerIndex.open(
            server.url, server.key, embedder.dimension, fingerprint, collection=collection
        )
        if rebuild:
            await index.wipe()
        return index
    from memory.index.embedded import EmbeddedIndex

    return await EmbeddedIndex.open(folder, embedder.dimension, fingerprint, rebuild=rebuild)
