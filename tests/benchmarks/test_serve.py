"""The benchmark of the server runs small, and tells what went wrong."""

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

Script = Callable[[str], ModuleType]


def test_a_few_users_are_served(run: Callable[..., tuple[int, Any]]) -> None:
    code, found = run("serve", "--users", 3, "--turns", 6, "--seconds", 0.01)
    assert code == 0
    assert (found["users"], found["turns"], found["errors"]) == (3, 6, 0)
    assert found["added_ms"].keys() == {"p50", "p95", "p99"}
    assert found["cpu_ms_a_turn"] > 0
    assert len(found["resident_mb"]) == 7


@pytest.mark.slow
def test_with_fifty_people_at_once_every_fact_is_kept_once(run: Callable[..., tuple[int, Any]]) -> None:
    code, found = run("serve", "--users", 50, "--turns", 1000, "--seconds", 0.2, "--facts", 250)
    assert found["facts"] == {"told": 250, "missing": 0, "double": 0}
    assert (code, found["errors"]) == (0, 0)


def test_a_quantile_is_one_of_the_values(script: Script) -> None:
    quantile = script("serve").quantile
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 2.0, 3.0, 3.0]


def test_what_went_wrong_is_shown(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark, shown = script("serve"), io.StringIO()
    monkeypatch.setattr(benchmark, "Console", lambda: Console(file=shown, width=160))
    result = {
        "users": 1, "turns": 2, "errors": 1, "facts": {"told": 3, "missing": 1, "double": 0},
        "added_ms": {"p95": 12.3}, "cpu_ms_a_turn": 4.0,
        "turns_a_second": 5.0, "resident_mb": [100.0, 101.0],
    }  # fmt: skip
    benchmark.show(result, ["503 too much"])
    assert "503 too much" in shown.getvalue()
    assert "3, 1, 0" in shown.getvalue()
    assert "100, 101 MB" in shown.getvalue()
