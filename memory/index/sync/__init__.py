"""Keeps the index in step with the database."""

from memory.index.sync.index_sync import IndexSync, Progress

__all__ = ["IndexSync", "Progress"]
