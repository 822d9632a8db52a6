"""The benchmark of sizes runs on a small world, and says truly whether its bar is reached."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


def test_the_same_size_is_the_same_world_again(script: Callable[[str], ModuleType]) -> None:
    scale = script("scale")
    told = list(scale.told(1, 200))
    assert told == list(scale.told(1, 200))
    assert len({fact.text for fact in told}) == 200
    assert sum(fact.ttl is not None for fact in told) == 2
    assert {fact.text for fact in scale.questions(400, 20)} <= {
        fact.text for person in (0, 1) for fact in scale.told(person, 200)
    }


def test_a_small_world_is_filled_searched_added_to_and_purged(run: Callable[..., tuple[int, Any]]) -> None:
    code, result = run("scale", "--sizes", 400, "--searches", 10, "--remembers", 5)
    assert code == 0, "no bar is about this size"
    row = result["sizes"]["400"]
    assert row["purged"] == 4
    assert row["found"] > 0.8
    assert 0 < row["search_p50"] <= row["search_p95"]
    assert result["ratio"] is None


@pytest.mark.parametrize(("large", "reached"), [(4.0, True), (4.1, False)])
def test_twice_the_time_of_ten_thousand_is_the_bar(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, large: float, reached: bool
) -> None:
    scale = script("scale")
    ratio = scale.slower_with_size({10_000: {"search_p50": 2.0}, 100_000: {"search_p50": large}})
    assert (ratio <= scale.SLOWER) is reached


def test_more_people_need_more_of_everything_and_a_busy_shard_makes_nobody_wait(
    script: Callable[[str], ModuleType],
) -> None:
    scale = script("scale")
    few, many = (scale.needs(people) for people in (10_000, 1_000_000))
    assert few["process"] == few["postgresql"] == few["qdrant_node"] == 1
    assert many["turns_a_second"] == 100 * few["turns_a_second"]
    assert (
        many["process"] * many["a_process_bears"]
        >= 1_000_000
        > (many["process"] - 1) * many["a_process_bears"]
    )
    idle, full = (scale.added(turns, processes=2, seconds=200) for turns in (1, 58))
    assert idle["added_p95"] < full["added_p50"], "at 99 % turns queue"
