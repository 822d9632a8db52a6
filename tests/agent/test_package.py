"""The package: its public names, its neighbours, and what importing it costs."""

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import agent

HOUSE = Path(agent.__file__).parent.parent


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, timeout=60, check=False
    )


def test_the_public_names_are_these() -> None:
    assert agent.__all__ == ["Companion", "Place", "Reply", "Settings"]
    assert all(getattr(agent, name).__name__ == name for name in agent.__all__)


def test_another_name_is_none_of_it() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Companions'"):
        _ = agent.Companions


def test_importing_the_package_loads_next_to_nothing() -> None:
    done = run("import sys, json; import agent; print(json.dumps(sorted(sys.modules)))", HOUSE)

    loaded = set(json.loads(done.stdout))
    assert not {"agents", "openai", "pydantic", "sqlalchemy", "numpy", "agent.companion"} & loaded


MODULES = sorted(
    ".".join(path.relative_to(HOUSE).with_suffix("").parts)
    for package in ("agent", "tools", "prompts")
    for path in (HOUSE / package).rglob("*.py")
    if path.name != "__main__.py"
)


def test_nothing_happens_at_import(tmp_path: Path) -> None:
    """No file, no thread, no connection, no logging set up: whatever is imported."""
    script = f"""
import importlib, logging, os, socket, sys, threading
sys.path.insert(0, {str(HOUSE)!r})
def refuse(*_, **__):
    raise AssertionError("a connection at import")
socket.socket.connect = refuse
for name in {[name.removesuffix(".__init__") for name in MODULES]!r}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] in ("agent", "tools", "memory", "prompts"):
            raise
print(threading.active_count(), logging.root.handlers, os.listdir())
"""
    done = run(script, tmp_path)

    assert done.stderr == ""
    assert done.stdout.strip() == "1 [] []"


@pytest.mark.parametrize("name", ["memory", "tools", "prompts"])
def test_another_package_of_the_same_name_is_pointed_out(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(HOUSE)!r}]; import agent"

    done = run(script, HOUSE.parent)

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: Hachi needs its own package '{name}'")
    assert str(tmp_path / name) in last
    assert "rename" in last


def test_a_missing_neighbour_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "agent").symlink_to(HOUSE / "agent")
    script = f"""
import sys, importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "prompts" else find(name, *rest)
sys.path.insert(0, {str(HOUSE)!r})
import agent
"""
    done = run(script, tmp_path)

    assert "Python finds nowhere" in done.stderr.strip().splitlines()[-1]


def test_a_neighbour_that_cannot_be_found_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ImportError, match=r"its own package 'memory' .* finds nowhere"):
        agent._check_neighbours()


def test_the_neighbours_at_hand_are_hachis_own() -> None:
    importlib.reload(agent)
    agent._check_neighbours()
