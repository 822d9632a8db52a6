"""Memories: their rows, and the links to their owners."""
