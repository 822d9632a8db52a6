"""The benchmark of prompts counts every token once, and catches a prompt that grows."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

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
        tokens={"tools": 600, "rules": 600, "person": 200, "setting": 40, "history": 500, "question": 20},
        calls=2,
        reply=3_500,
        upkeep_calls=0,
        upkeep=900,
    )
    changed = {"upkeep_calls": lambda n: int(n % 3 == 0)} | changed
    return [
        replace(same, turn=n, **{name: of(n) for name, of in changed.items()}) for n in range(1, turns + 1)
    ]


def missed(prompt: ModuleType, costs: list[Any]) -> list[str]:
    return [name.split(",")[0] for name, (value, most) in prompt.bars(costs).items() if value > most]


async def test_a_short_conversation_is_held_and_every_section_is_counted(prompt: ModuleType) -> None:
    costs = await prompt.converse(14)
    assert missed(prompt, costs) == []
    assert [cost.turn for cost in costs] == list(range(1, 15))
    assert all(cost.reply > 0.95 * cost.first * cost.calls > 0 for cost in costs)
    assert {cost.upkeep_calls for cost in costs} == {0, 1}
    assert [bool(cost.tokens["history"]) for cost in costs] == [False] + [True] * 13
    assert set(costs[13].tokens) == {"tools", "rules", "person", "summary", "setting", "history", "question"}
    assert max(cost.calls for cost in costs) > 1, "some turns call a tool"
    assert [cost.turn for cost in costs if cost.cut] == [8, 12]
    assert costs[0].new == pytest.approx(costs[0].first, abs=5), "rounded by piece"
    assert all(cost.new < cost.first - 1_000 for cost in costs[1:]), "rules and tools are computed already"


def test_a_token_counts_in_one_section_alone(prompt: ModuleType) -> None:
    names = ("person", "summary", "setting", "question")
    heads = [prompt.read(name).splitlines()[0] for name in names]
    message = "\n\n".join(f"{head}\n> שלום {n} élève\n> ## Their message" for n, head in enumerate(heads))
    parts = prompt.split(message)
    assert list(parts) == list(names)
    assert "".join(parts.values()) == message


@pytest.mark.parametrize(
    ("changed", "bars"),
    [
        ({}, []),
        ({"upkeep_calls": lambda n: int(n % 2 == 0)}, ["upkeep calls a turn"]),
        ({"upkeep": lambda _: 1_400}, ["tokens sent a turn"]),
        (
            {"tokens": lambda n: {"rules": 600, "tools": 600, "history": 500 + n}},
            ["a first call of the last hundred turns to one of turns 11 to 110"],
        ),
    ],
)
def test_what_is_out_of_line_misses_its_bar(
    prompt: ModuleType, changed: dict[str, Callable[[int], Any]], bars: list[str]
) -> None:
    assert missed(prompt, flat(prompt, **changed)) == bars


def test_a_missed_bar_is_exit_code_one(prompt: ModuleType, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def converse(turns: int) -> list[Any]:
        return flat(prompt, turns, upkeep=lambda n: 2_000 * (turns - 1))

    monkeypatch.setattr(prompt, "converse", converse)
    assert run("prompt", "--turns", 1)[0] == 0
    assert run("prompt", "--turns", 2)[0] == 1


async def test_upkeep_that_fails_is_not_taken_for_upkeep_that_costs_nothing(
    prompt: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no answer")

    monkeypatch.setattr(prompt.Consolidating, "answer", broken)
    with pytest.raises(RuntimeError, match="left work undone"):
        await prompt.converse(20)
