"""The benchmarks of a turn run small."""

from collections.abc import Callable
from types import ModuleType

import pytest

from agent.tracing import recorder


async def test_a_few_turns_are_measured_with_and_without_recording(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = script("turn")
    for name, small in {"FACTS": 3, "WARM_UP": 1, "LOT": 1}.items():
        monkeypatch.setattr(turn, name, small)
    monkeypatch.setattr(recorder, "PAUSE", recorder.PAUSE)  # the benchmark changes it
    times = await turn.compare(1)
    assert times.keys() == {turn.SAME_TOOLS, turn.WHOLE_TURN, turn.SETTLED}
    assert all(seconds > 0 for seconds in times.values())
    recording = await turn.recording_cost(1)
    assert recording > 0


async def test_the_statements_of_a_turn_are_counted_by_step(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = script("turn")
    for name, small in {"FACTS": 3, "WARM_UP": 1}.items():
        monkeypatch.setattr(turn, name, small)
    found = await turn.statements(2)
    assert found.keys() == {*turn.STEPS, turn.TOOLS_STEP, turn.AFTER}
    assert all(step["statements"] > 0 for step in found.values())
    assert sum(found[step]["transactions"] for step in (*turn.STEPS, turn.TOOLS_STEP)) == 3
