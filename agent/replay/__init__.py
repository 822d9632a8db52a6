"""Replays a recorded turn from its trace alone, and makes tests of traces."""
