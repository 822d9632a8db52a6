"""The benchmark of sizes runs on a small world, and says truly whether its bars are reached."""

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

Script = Callable[[str], ModuleType]
ROW = {
    "search_p50": 2.0, "search_p95": 3.0, "remember_p50": 5.0, "remember_p95": 6.0, "found": 1.0,
    "purged": 4, "purge_seconds": 0.1, "rows_seconds": 1.0, "index_seconds": 1.0, "reopen_seconds": 0.2,
    "resident_mb": 300.0, "disk_mb": 7.0,
}  # fmt: skip


def test_the_same_size_is_the_same_world_again(script: Script) -> None:
    world = script("scale_world")
    told = list(world.facts(400))
    assert told == list(world.facts(400))
    assert len({(fact.user, fact.text) for fact in told}) == 400
    assert {fact.user for fact in told} == {"user-0", "user-1"}
    assert sum(fact.expires_at is not None for fact in told) == 4
    assert sum(fact.names is not None for fact in told) == 2


def test_questions_are_about_what_the_world_holds_and_new_facts_are_not_in_it(script: Script) -> None:
    world = script("scale_world")
    known = {(fact.user, fact.text) for fact in world.facts(400)}
    assert {(fact.user, fact.text) for fact in world.questions(400, 50)} <= known
    assert known.isdisjoint((fact.user, fact.text) for fact in world.new_facts(400, 50))


async def test_a_small_world_is_filled_searched_added_to_and_purged(script: Script) -> None:
    found = await script("scale_hachi").measure(400, 10, 5, 200)
    assert found["memories"] == 400
    assert found["found"] > 0.9
    assert found["purged"] == 4
    assert found["disk_mb"] > 0
    assert 0 < found["search_p50"] <= found["search_p95"]
    assert 0 < found["remember_p50"] <= found["remember_p95"]
    assert found["many_per_second"] > 0
    assert min(found["turns_p50"], found["turns_beside_p50"]) > 0


def test_it_measures_each_size_in_a_process_of_its_own(run: Callable[..., tuple[int, Any]]) -> None:
    code, result = run("scale", "--sizes", 200, "--searches", 5, "--remembers", 2)
    assert code == 0  # no bar is about this size
    assert result["hachi"]["200"]["purged"] == 2
    assert result["mem0"] == {}


@pytest.mark.parametrize(("ours", "reached"), [(1.0, True), (1.1, False)])
def test_twenty_times_faster_than_mem0_is_the_bar_at_a_thousand(
    script: Script, ours: float, reached: bool
) -> None:
    [bar] = script("scale").bars({1_000: {"search_p50": ours}}, {1_000: {"search_p50": 20.0}})
    assert bar["ratio"] == pytest.approx(20.0 / ours)
    assert bar["reached"] is reached


@pytest.mark.parametrize(("large", "reached"), [(4.0, True), (4.1, False)])
def test_twice_the_time_of_ten_thousand_is_the_bar_at_a_million(
    script: Script, large: float, reached: bool
) -> None:
    [bar] = script("scale").bars({1_000_000: {"turns_p50": large, "turns_beside_p50": 2.0}}, {})
    assert bar["reached"] is reached


def test_a_missed_bar_is_exit_code_one(
    script: Script, run: Callable[..., tuple[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"hachi": 1.5, "mem0": 20.0}
    monkeypatch.setattr(script("scale"), "in_a_world", lambda _, who, *__: {"search_p50": times[who]})
    code, result = run("scale", "--sizes", 1000, "--mem0", "python-with-mem0")
    assert code == 1
    assert [bar["reached"] for bar in result["bars"]] == [False]


def test_the_table_shows_both_and_the_bars(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, shown = script("scale"), io.StringIO()
    monkeypatch.setattr(scale, "Console", lambda: Console(file=shown, width=160))
    hachi, mem0 = {1_000: ROW}, {1_000: {**ROW, "search_p50": 9.0}}
    scale.show(hachi, mem0, scale.bars(hachi, mem0))
    assert "9.00, 3.00 ms" in shown.getvalue()
    assert "missed     4.50" in shown.getvalue()


def test_the_plots_are_drawn_the_same_each_time(script: Script, tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    names = [f"benchmark-{what}.svg" for what in ("search", "remember", "purge")]
    result = {"hachi": {"1000": ROW, "10000": ROW}, "mem0": {}}
    for folder in ("one", "other"):
        script("scale_plots").draw(result, tmp_path / folder)
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == sorted(names)
    assert all(
        (tmp_path / "one" / name).read_text() == (tmp_path / "other" / name).read_text() for name in names
    )
