"""The index on a Qdrant server."""

from memory.index.server.index import SEARCH_SECONDS, ServerIndex

__all__ = ["SEARCH_SECONDS", "ServerIndex"]
