"""Replays a recorded turn from its trace, and turns traces into tests."""
