"""One line of JSON for each person and run, none of its decisions lost."""

import json
import logging
from typing import Any

import pytest

from memory.facts.candidate import Provenance
from memory.facts.decision_log import decision_run
from memory.records import NewMemory
from tests.memory.conftest import Stack


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "hachi.decisions")
    return lambda: [json.loads(line) for line in caplog.messages if "memory_decision" in line]


def facts(line: dict[str, Any]) -> list[str]:
    return [decision["fact"] for decision in line["decisions"]]


async def test_each_decision_making_is_one_line_of_json(stack: Stack, caplog: Any, lines: Any) -> None:
    first = await stack.remember("Ana runs")
    stack.clock.advance(days=1)
    caplog.clear()
    new_memories = [
        NewMemory("Ana runs at noon", replaces=first.id),
        NewMemory("Ana says hello", importance=0.1),
    ]
    message = "I run at noon. Hello! ☕\n"
    [now, _] = await stack.writer.remember(new_memories, Provenance("anna", stack.clock.now, said=message))
    await stack.writer.remember([], Provenance("anna", stack.clock.now))
    replaced = {"fact": "Ana runs at noon", "action": "replace", "id": now.id, "target_id": first.id}
    ignored = {"fact": "Ana says hello", "action": "ignore", "reason": "importance 0.1 is under 0.3"}
    assert lines() == [
        {
            "event": "memory_decision",
            "user_id": "anna",
            "input_message_length": len(message),
            "extracted_count": 2,
            "decisions": [replaced | {"reason": "corrected on purpose"}, ignored],
        }
    ]
    assert "\n" not in caplog.messages[0]


async def test_a_run_of_several_calls_is_one_line_for_each_person(stack: Stack, lines: Any) -> None:
    with decision_run():
        for user, message in (("ana", "one"), ("ana", "three"), ("ben", "")):
            origin = Provenance(user, stack.clock.now, said=message)
            await stack.writer.remember([NewMemory(f"{user} says {message}")], origin)
    ana, ben = lines()
    assert (ana["user_id"], ana["input_message_length"], ana["extracted_count"]) == ("ana", 8, 2)
    assert facts(ana) == ["ana says one", "ana says three"]
    assert facts(ben) == ["ben says"]


async def test_what_was_decided_before_a_failure_is_logged(stack: Stack, lines: Any) -> None:
    decide, remaining = stack.writer.decide, [1]

    async def decide_once(candidate: Any) -> Any:
        if not remaining:
            raise RuntimeError("broken")
        remaining.clear()
        return await decide(candidate)

    stack.writer.decide = decide_once  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await stack.writer.remember(
            [NewMemory("Ana runs"), NewMemory("Ana swims")], Provenance("ana", stack.clock.now)
        )
    [line] = lines()
    assert (line["extracted_count"], facts(line)) == (2, ["Ana runs"])
