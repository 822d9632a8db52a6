"""Counts what a function does, where a test proves how its work grows: a clock would measure the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many functions, Python's own among them, are called."""
    made = 0

    def called(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal made
        made += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return made
