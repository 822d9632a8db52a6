"""The index on a Qdrant server, and the work that is to be done for it."""
