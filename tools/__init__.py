"""Hachi's tools: what the model may do, as typed functions, registered in one list in `tools.registry`."""
