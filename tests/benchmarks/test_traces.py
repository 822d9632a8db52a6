"""The benchmark of looking at traces runs small."""

from collections.abc import Callable
from typing import Any


def test_a_few_traces_are_looked_at(run: Callable[..., tuple[int, Any]]) -> None:
    code, found = run("traces", "--traces", 60, "--times", 1)
    assert code == 0
    assert {"the newest 20", "show last", "the statistics of all"} <= found.keys()
    assert all(seconds > 0 for seconds in found.values())


def test_what_is_too_slow_is_named(
    run: Callable[..., tuple[int, Any]], script: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(script("traces"), "BAR", 0.0)
    code, _ = run("traces", "--traces", 8, "--times", 1)
    assert code == 1
