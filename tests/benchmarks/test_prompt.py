"""The benchmark of prompts counts every token once, and catches a prompt that grows."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

Script = Callable[[str], ModuleType]
Run = Callable[..., tuple[int, Any]]
TURNS = 210


@pytest.fixture
def prompt(script: Script) -> ModuleType:
    return script("prompt")


def flat(prompt: ModuleType, turns: int = TURNS, **changed: Callable[[int], Any]) -> list[Any]:
    """A conversation in which every turn costs the same, but for what `changed` makes of the nth."""
    same = prompt.Cost(
        turn=0,
        tokens={"tools": 1000, "rules": 900, "person": 200, "setting": 40, "history": 500, "question": 20},
        estimated=2600,
        prefix=950,
        fixed="aa",
        filled=0.9,
        calls=2,
        upkeep_calls=0,
        upkeep=1500,
    )
    changed = {"upkeep_calls": lambda n: int(n % 3 == 0)} | changed
    return [
        replace(same, turn=n, **{name: made(n) for name, made in changed.items()})
        for n in range(1, turns + 1)
    ]


def missed(prompt: ModuleType, costs: list[Any]) -> list[str]:
    return [bar["bar"].split(",")[0] for bar in prompt.bars(costs) if not bar["reached"]]


def test_a_short_conversation_is_held_and_every_section_is_counted(run: Run) -> None:
    code, result = run("prompt", "--turns", 14)
    assert code == 0
    assert [cost["turn"] for cost in result["costs"]] == list(range(1, 15))
    assert all(sum(cost["tokens"].values()) == cost["whole"] for cost in result["costs"])
    assert {cost["upkeep_calls"] for cost in result["costs"]} == {0, 1}
    assert [bool(cost["tokens"]["history"]) for cost in result["costs"]] == [False] + [True] * 13
    assert set(result["costs"][13]["tokens"]) == {
        "tools", "rules", "person", "summary", "setting", "history", "question",
    }  # fmt: skip
    assert len({cost["tokens"]["rules"] for cost in result["costs"]}) == 1
    assert result["known"]["facts"] > 3
    assert result["known"]["open_tasks"] >= 3
    assert result["upkeep"]["calls_of_the_reply"] > 1, "some turns call a tool"


def test_a_token_counts_in_one_section_alone(prompt: ModuleType) -> None:
    heads = [prompt.read(name).splitlines()[0] for name in ("person", "summary", "setting")]
    system = "Be kind.\n\n## How you work\n> ## This conversation\n" + "".join(
        f"\n\n{head}\n> שלום {n} élève" for n, head in enumerate(heads)
    )
    parts = prompt.split(system)
    assert list(parts) == ["rules", "person", "summary", "setting"]
    assert "".join(parts.values()) == system
    assert "> ## This conversation" in parts["rules"], "what is quoted is no heading"

    answering, looking_back = prompt.Scripted(), prompt.LookingBack()
    said = [{"role": "user", "content": text} for text in ("hello", "you again", "what now?")]
    answering.asked, looking_back.asked = [(system, said, "[{}]")], [("", said[:1], "")]
    cost = prompt.cost(1, answering, looking_back, system[:20], prompt.Settings())

    assert cost.whole == prompt.count(system) + prompt.count("[{}]") + sum(
        prompt.count(message["content"]) for message in said
    )
    assert cost.tokens["question"] == prompt.count("what now?")
    assert (cost.system, cost.upkeep) == (prompt.count(system), prompt.count("hello"))
    assert 0 < cost.prefix < cost.tokens["rules"]


def test_what_does_not_grow_reaches_every_bar(prompt: ModuleType) -> None:
    assert missed(prompt, flat(prompt)) == []
    assert len(prompt.bars(flat(prompt))) == 7


def test_upkeep_after_each_turn_is_caught(prompt: ModuleType) -> None:
    assert missed(prompt, flat(prompt, upkeep_calls=lambda _: 1)) == ["upkeep calls a turn"]
    assert missed(prompt, flat(prompt, upkeep=lambda _: 3000)) == ["tokens sent for upkeep a turn"]


def test_a_history_that_grows_is_caught(prompt: ModuleType) -> None:
    grown = flat(prompt, tokens=lambda n: {"rules": 2000, "history": 500 + n})
    assert missed(prompt, grown) == ["a prompt of the last hundred turns to one of turns 11 to 110"]


def test_a_person_who_takes_ever_more_room_is_caught(prompt: ModuleType) -> None:
    grown = flat(prompt, tokens=lambda n: {"rules": 2000, "person": 200 + n})
    assert missed(prompt, grown) == [
        "a prompt of the last hundred turns to one of turns 11 to 110",
        "the longest without history and question",
    ]


@pytest.mark.parametrize(
    ("what", "value", "bar"),
    [
        ("filled", 1.1, "about the person"),
        ("fixed", "bb", "different persona"),
        ("upkeep_calls", 2, "upkeep calls an exchange"),
    ],
)
def test_one_turn_out_of_line_is_caught(prompt: ModuleType, what: str, value: Any, bar: str) -> None:
    usual = getattr(flat(prompt, 1)[0], what)
    costs = flat(prompt, 30, **{what: lambda n: value if n == 20 else usual})
    assert missed(prompt, costs) == [bar]


def test_a_missed_bar_is_exit_code_one(prompt: ModuleType, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def converse(turns: int) -> tuple[list[Any], dict[str, int]]:
        return flat(prompt, turns, upkeep_calls=lambda n: n), {"facts": 0, "open_tasks": 0}

    monkeypatch.setattr(prompt, "converse", converse)
    assert run("prompt", "--turns", 1)[0] == 0
    assert run("prompt", "--turns", 2)[0] == 1


async def test_upkeep_that_fails_is_not_taken_for_upkeep_that_costs_nothing(
    prompt: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no answer")

    monkeypatch.setattr(prompt.LookingBack, "answer", broken)
    with pytest.raises(RuntimeError, match="turn 1 left work undone"):
        await prompt.converse(1)


def test_each_hundred_turns_says_as_much_in_the_same_languages_about_other_things(prompt: ModuleType) -> None:
    texts = {n: prompt.turn(n).text for n in range(1, 301)}
    assert texts == {n: prompt.turn(n).text for n in range(1, 301)}
    assert len(set(texts.values())) > 290
    for n in range(1, 101):
        kinds = [("א" <= max(texts[m]) <= "ת", texts[m].count(".") // 20) for m in (n, n + 100, n + 200)]
        assert kinds[0] == kinds[1] == kinds[2]


def test_what_is_handed_in_grows_and_some_tasks_are_closed(prompt: ModuleType) -> None:
    summaries = [len(prompt.turn(n).noted["summary"]) for n in (1, 10, 30)]
    assert summaries == sorted(set(summaries))
    statuses = [
        call[1]["status"] for n in range(1, 43) for call in prompt.turn(n).calls if "status" in call[1]
    ]
    assert statuses.count("open") > statuses.count("done") == 2
    assert prompt.turn(20).calls[-1][1]["description"] == prompt.turn(19).calls[-1][1]["description"]


def test_a_summary_and_rulings_are_handed_in_where_they_are_asked_for(prompt: ModuleType) -> None:
    model = prompt.LookingBack()
    model.begin(prompt.turn(1))
    asked = '{"summary": "…", "memory_summary": …, "rulings": …}'
    model.asked.append(("", [{"role": "user", "content": asked}], ""))
    found = json.loads(model.answer().content[0].text)
    assert found["memory_summary"] == found["summary"]
    assert found["rulings"] == [{"pair": 1, "action": "add"}]


def test_the_estimate_is_shown_beside_the_tokenizer_in_four_languages(prompt: ModuleType) -> None:
    found = prompt.languages()
    assert list(found) == ["Persona and rules", "English", "French", "Hebrew", "Chinese"]
    for row in found.values():
        assert row["estimated"] == pytest.approx(row["tokens"] * (1 + row["off"]))
    assert abs(found["English"]["off"]) < 0.15


def test_the_tables_show_sections_and_bars(
    prompt: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def converse(turns: int) -> tuple[list[Any], dict[str, int]]:
        return flat(prompt, turns, filled=lambda n: n / 100), {"facts": 7, "open_tasks": 3}

    shown = io.StringIO()
    monkeypatch.setattr(prompt, "converse", converse)
    monkeypatch.setattr(prompt, "Console", lambda: Console(file=shown, width=200))
    monkeypatch.setattr("sys.argv", ["prompt", "--turns", str(TURNS)])
    assert prompt.main() == 1
    assert "│ persona and rules     │ 900   │ 900   │ 900" in shown.getvalue()
    assert "7 facts, 3 open tasks" in shown.getvalue()
    assert "missed" in shown.getvalue()


def test_the_plot_shows_means_of_twenty_turns_and_its_labels_keep_apart(script: Script) -> None:
    plots = script("prompt_plots")
    costs = [{"turn": n, "tokens": {"rules": 900, "history": n}} for n in range(1, 41)]
    across, layers = plots.smoothed(costs)
    assert across == [10.5, 30.5]
    assert layers == {"rules": [900, 900], "history": [10.5, 30.5]}
    heights = list(plots.labelled({"rules": [900], "person": [2], "setting": [2]}).values())
    assert heights[0] == 450
    assert heights[2] - heights[1] > 50


def test_the_plot_is_drawn_the_same_each_time(prompt: ModuleType, tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    costs = [{"turn": n, "tokens": {"rules": 900, "history": n}} for n in range(1, 41)]
    for name in ("one.svg", "other.svg"):
        prompt.plot(costs, tmp_path / name)
    assert (tmp_path / "one.svg").read_text() == (tmp_path / "other.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--turns", "0"], "there is at least one turn"),
        (["--plot", "x.svg"], "pip install matplotlib"),
        (["--plot", "nowhere/x.svg"], "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_runs(
    prompt: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.setattr(prompt, "find_spec", lambda _: "nowhere" in arguments[1] or None)
    monkeypatch.setattr("sys.argv", ["prompt", *arguments])
    with pytest.raises(SystemExit) as ended:
        prompt.main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
