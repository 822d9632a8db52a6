"""The benchmark of prompts counts every token once, and misses a bar where something is out of line."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def prompt(script: Script) -> ModuleType:
    return script("prompt")


async def test_a_short_story_is_held_and_every_section_is_counted(prompt: ModuleType) -> None:
    costs = await prompt.converse(30)
    assert prompt.over(prompt.BARS, prompt.figures(costs)) == []
    assert [cost.turn for cost in costs] == list(range(1, 31))
    assert all(cost.reply > 0.95 * cost.first * cost.calls > 0 for cost in costs)
    assert max(cost.calls for cost in costs) > 1, "some turns call a tool"
    assert sum(cost.consolidations for cost in costs) > 2
    sections = {"tools", "rules", "person", "summary", "setting", "history", "question"}
    assert sections in [set(cost.tokens) for cost in costs]


def test_a_token_counts_in_one_section_alone(prompt: ModuleType) -> None:
    names = ("person", "summary", "setting", "question")
    heads = [prompt.read(name).splitlines()[0] for name in names]
    message = "\n\n".join(f"{head}\n> שלום {n} élève\n> ## Their message" for n, head in enumerate(heads))
    parts = prompt.split(message)
    assert list(parts) == list(names)
    assert "".join(parts.values()) == message


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"consolidations": 1}, ["consolidation calls a turn"]),
        ({"consolidated": 500}, ["consolidation tokens a turn"]),
        ({"tokens": {"rules": 600, "tools": 600, "history": 900}}, ["tokens of a first call, mean"]),
        ({"vital": False}, ["prompts without the vital fact of their person"]),
    ],
)
def test_what_is_out_of_line_misses_its_bar_with_exit_code_one(
    prompt: ModuleType, run: Run, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], missed: list[str]
) -> None:
    usual = prompt.Cost(1, {"rules": 600, "tools": 600}, 1, 1_200, 0, 0, True)

    async def converse(turns: int) -> list[Any]:
        return [replace(usual, **changed)] * turns

    monkeypatch.setattr(prompt, "converse", converse)
    code, result = run("prompt", "--turns", 2)
    assert code == bool(missed)
    assert [name for name, bar in result["bars"].items() if bar["value"] > bar["at most"]] == missed


async def test_a_consolidation_that_fails_is_not_taken_for_one_that_costs_nothing(
    prompt: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no answer")

    monkeypatch.setattr(prompt.Consolidating, "answer", broken)
    with pytest.raises(RuntimeError, match="left work undone"):
        await prompt.converse(30)
