"""Explains why the model received a memory, message, summary or passage in a turn, or did not."""
