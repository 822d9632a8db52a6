"""Long work on the event loop lets others run."""

import pytest
from waiting import turns_of_others

from memory.process.pace import unhurried


async def through(items: range) -> None:
    assert [n async for n in unhurried(items)] == [*items]


async def test_long_work_yields_and_short_work_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await turns_of_others(through(range(500)), monkeypatch) > 500 / 30
    assert await turns_of_others(through(range(10)), monkeypatch) == 0
