"""The benchmarks are scripts in a folder of their own: imported from there, as they import each other."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, light_embedder: None) -> Callable[[str], ModuleType]:
    """`script("scale")` is the module of that name."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture
def run(
    script: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, Any]]:
    """`run("scale", "--sizes", 400)`: its exit code, and what it prints with --json."""

    def ran(name: str, *arguments: object) -> tuple[int, Any]:
        monkeypatch.setattr("sys.argv", [name, *map(str, arguments), "--json"])
        code = script(name).main()
        return code, json.loads(capsys.readouterr().out)

    return ran
