"""The embedded index: Qdrant Edge in a folder."""
