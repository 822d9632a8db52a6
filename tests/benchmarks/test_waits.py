"""The benchmark of who waits for whom runs small, and names who is held up for too long."""

from collections.abc import Callable
from typing import Any


def test_each_act_is_measured(run: Callable[..., tuple[int, Any]], script: Any) -> None:
    _, found = run("waits", "--scale", 0.005)
    assert found.keys() == script("waits").ACTS.keys()
    assert all(figures["busy"] > 0 for figures in found.values())


def test_who_is_held_up_is_named(run: Callable[..., tuple[int, Any]]) -> None:
    code, _ = run("waits", "--scale", 0.005, "--only", "import", "--bar", "import=0")
    assert code == 1
