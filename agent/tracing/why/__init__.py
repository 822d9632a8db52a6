"""Explains why the model was given a memory, message, summary or passage in a turn, or was not."""
