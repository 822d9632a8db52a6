"""Counts what a function does, where a test proves how its work grows: a clock would measure the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many functions, Python's own among them, are called, without those that measure coverage."""
    made = 0

    def called(frame: FrameType, event: str, function: Any) -> None:
        nonlocal made
        if event.endswith("call") and "slipcover" not in frame.f_code.co_filename:
            made += event == "call" or function.__module__ != "slipcover.probe"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return made
