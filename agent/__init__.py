"""Hachi's runtime. A program imports `hachi`; read on at `agent/turn/turn.py`: one turn, in five steps."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return a public name of `hachi`. Programs of the second edition import them from here."""
    import hachi

    return getattr(hachi, name)
