"""The benchmark of the start."""

from collections.abc import Callable
from types import ModuleType

import pytest


def test_commands_are_measured_and_a_missed_bar_is_said(
    script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = script("start")
    monkeypatch.setattr(start, "BARS", {"--help": 60.0, "chat --user ana, first answer": 60.0})
    monkeypatch.setattr("sys.argv", ["start", "--runs", "1"])
    assert start.main() == 0
    monkeypatch.setattr("sys.argv", ["start", "--runs", "1", "--bar=--help=0"])
    assert start.main() == 1
    assert "--help: " in capsys.readouterr().err
