"""The package: its public names, its neighbours, and what importing it costs."""

import json
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

import hachi
from hachi.__main__ import main as command

HOUSE = Path(hachi.__file__).parent.parent


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, timeout=60, check=False
    )


def test_every_public_name_is_there():
    assert "Companion" in hachi.__all__
    assert all(getattr(hachi, name).__name__ == name for name in hachi.__all__)


def test_another_name_is_none_of_it():
    with pytest.raises(AttributeError, match="no attribute 'Companions'"):
        _ = hachi.Companions


def test_the_names_are_found_where_the_second_edition_had_them():
    from agent import Companion

    assert Companion is hachi.Companion


def test_importing_the_package_loads_next_to_nothing():
    done = run("import sys, json; import hachi; print(json.dumps(sorted(sys.modules)))", HOUSE)

    loaded = set(json.loads(done.stdout))
    assert not {"agents", "openai", "pydantic", "sqlalchemy", "numpy", "agent"} & loaded


MODULES = sorted(
    ".".join(path.relative_to(HOUSE).with_suffix("").parts)
    for package in ("hachi", "agent", "tools", "prompts")
    for path in (HOUSE / package).rglob("*.py")
    if path.name != "__main__.py"
)


@pytest.mark.slow
def test_nothing_happens_at_import(tmp_path):
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
        if error.name is None or error.name.split(".")[0] in ("hachi", "agent", "tools", "memory", "prompts"):
            raise
print(threading.active_count(), logging.root.handlers, os.listdir())
"""
    done = run(script, tmp_path)

    assert done.stderr == ""
    assert done.stdout.strip() == "1 [] []"


NEIGHBOURS = ["agent", "memory", "tools", "prompts"]


def clash(name: str, script: str) -> str:
    """What is said, in one line, where another package is found under a name of ours."""
    done = run(script, HOUSE.parent)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"Hachi needs its own package '{name}' in {HOUSE}, but " in last
    assert "rename that one" in last
    return last


@pytest.mark.parametrize(
    ("name", "kind"),
    [("agent", "package"), ("memory", "module"), ("tools", "imported"), ("prompts", "made by hand")],
)
def test_another_package_of_the_same_name_is_pointed_out(name, kind, tmp_path):
    source = tmp_path / (f"{name}.py" if kind == "module" else f"{name}/__init__.py")
    source.parent.mkdir(exist_ok=True)
    source.write_text("")
    first, then = str(tmp_path), str(HOUSE)
    before = {
        "imported": f"import {name}; sys.path.reverse()",
        "made by hand": f"sys.modules['{name}'] = types.ModuleType('x')",
    }
    path = f"import sys, types; sys.path[:0] = [{first!r}, {then!r}]"
    script = f"{path}; {before.get(kind, '')}\nfrom hachi import Companion"

    said = clash(name, script)

    assert ("finds nothing" if kind == "made by hand" else f"finds {source}") in said


@pytest.mark.parametrize("name", ["agent", "prompts"])
def test_a_package_that_was_installed_over_ours_is_pointed_out(name, tmp_path, monkeypatch):
    for other in NEIGHBOURS:
        shutil.copytree(HOUSE / other, tmp_path / other, ignore=shutil.ignore_patterns("[!_]*", "__py*"))
    (tmp_path / name / "__init__.py").write_text('"""Somebody else\'s."""')
    monkeypatch.setattr(hachi, "__file__", str(tmp_path / "hachi" / "__init__.py"))
    monkeypatch.setattr(hachi, "find_spec", lambda one: PathFinder.find_spec(one, [str(tmp_path)]))

    with pytest.raises(ImportError, match=f"'{name}' .* another package has been installed over it"):
        hachi.check_neighbours()


def test_the_command_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(hachi, "find_spec", lambda name: None)

    assert command() == 1
    assert capsys.readouterr().err.startswith("Hachi needs its own package 'agent'")
