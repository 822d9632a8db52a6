"""The benchmark of the server runs small."""

from collections.abc import Callable
from typing import Any

import pytest


def test_a_few_users_are_served(run: Callable[..., tuple[int, Any]]) -> None:
    code, found = run("serve", "--users", 3, "--turns", 6, "--seconds", 0.01, "--facts", 2)
    assert code == 0
    assert (found["users"], found["turns"], found["errors"]) == (3, 6, 0)
    assert found["added_ms"].keys() == {"p50", "p95", "p99"}
    assert found["cpu_ms_a_turn"] > 0
    assert found["statements_a_turn"] > 5
    assert len(found["resident_mb"]) == 7
    assert found["facts"] == {"told": 2, "missing": 0, "double": 0}


@pytest.mark.slow
def test_with_fifty_people_at_once_every_fact_is_kept_once(run: Callable[..., tuple[int, Any]]) -> None:
    code, found = run("serve", "--users", 50, "--turns", 1000, "--seconds", 0.2, "--facts", 250)
    assert found["facts"] == {"told": 250, "missing": 0, "double": 0}
    assert (code, found["errors"]) == (0, 0)
