"""The pages in docs/ say what the code says, and their Python runs."""

import ast
import asyncio
import dataclasses
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from agent.surfaces.cli import build
from agent.types.budget import Budget
from hachi import Companion, Settings
from tests.reference import http_page, python_page
from tools.registry import TOOLS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}


def settings_table() -> str:
    """What docs/settings.md must show, made from the fields of Settings and the docstrings under them."""
    rows = ["| Variable | Takes | Default | What it does |", "|---|---|---|---|"]
    for name, line in docstrings():
        field = Settings.model_fields[name]
        alias: Any = field.validation_alias
        variable = alias.choices[-1] if alias else f"HACHI_{name.upper()}"
        if field.default_factory is not None:
            default = "the platform's data folder"
        else:
            value = str(field.default).lower() if isinstance(field.default, bool) else field.default
            default = "unset" if value in (None, frozenset()) else f"`{value}`"
        rows.append(f"| `{variable}` | {taken(field)} | {default} | {line} |")
    return "\n".join(rows)


def taken(field: Any) -> str:
    """The values of a choice, or the bounds of a number."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if get_origin(kind) is Literal:
            return ", ".join(f"`{choice}`" for choice in get_args(kind))
    if bool in (field.annotation, *get_args(field.annotation)):
        return "`true`, `false`"
    if field.annotation in (int, float):
        bounds = {
            name: value for bound in field.metadata for name, value in dataclasses.asdict(bound).items()
        }
        return f"{bounds['ge']} to {bounds['le']}" if "ge" in bounds else f"more than {bounds['gt']}"
    if field.annotation == int | None:
        return "a number"
    if field.annotation is Budget:
        return "characters, or `N tokens`"
    return "a folder" if field.annotation is Path else "text"


def docstrings() -> Iterator[tuple[str, str]]:
    [settings] = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(settings, ast.ClassDef)
    for field, text in zip(settings.body, settings.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            yield field.target.id, " ".join(str(text.value.value).split())


def test_each_setting_says_when_one_would_touch_it() -> None:
    advice = re.compile(r"\b(?:Set it|Raise it|Lower it|Switch it)\b")
    assert [name for name, line in docstrings() if not advice.search(line)] == []


def test_the_settings_page_is_the_table_of_the_code() -> None:
    shown = "\n".join(line for line in PAGES["settings"].splitlines() if line.startswith("|"))
    assert shown == settings_table()


def test_every_setting_has_a_line_on_what_it_does() -> None:
    assert {name for name, _ in docstrings()} == Settings.model_fields.keys()


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(build()))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_on_the_command_line_page(path: tuple[str, ...]) -> None:
    page = PAGES["command-line"]
    assert f"`hachi {' '.join(path)}" in page
    for parameter in (one for one in COMMANDS[path].params if not getattr(one, "hidden", False)):
        for option in (name for name in parameter.opts if name.startswith("--")):
            assert f"`{option}" in page, option


def test_every_command_the_pages_name_is_there() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    groups, known = {path[0] for path in COMMANDS if len(path) > 1}, {path[:2] for path in COMMANDS}
    for page in (*PAGES.values(), readme):
        code = "\n".join(re.findall(r"`[^`\n]+`|```(?:sh|console|text)\n.*?```", page, re.DOTALL))
        for first, second in re.findall(r"(?<![\w./-])hachi ([a-z]+)\b(?: ([a-z-]+)\b)?", code):
            named = (first, second) if first in groups else (first,)
            assert named in known or (first in groups and not second), named


async def test_the_reference_pages_are_those_of_the_code() -> None:
    assert PAGES["python-reference"] == python_page(), "run python -m tests.reference"
    assert PAGES["http-reference"] == await http_page(), "run python -m tests.reference"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_tools_page_names_each_tool_with_its_arguments(tool: Any) -> None:
    page = PAGES["prompts-and-tools"]
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{tool.name}` |")]
    assert re.findall(r"`(\w+)`", row.split("|")[2]) == [*tool.schema["properties"]]


def blocks(page: str) -> list[str]:
    """Each at the line where it stands on the page, for what a traceback shows."""
    found = re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return ["\n" * page.count("\n", 0, match.start(1)) + match[1] for match in found]


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if blocks(text)])
async def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_embedder: None
) -> None:
    """Block after block in one namespace, where `pet` is a companion that is open already."""
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
    settings = Settings.load(home=tmp_path / "another", embedder="bundled")
    async with Companion.open(settings, periodic_jobs=False) as pet, asyncio.timeout(60):
        names: dict[str, Any] = {"__name__": page}
        for block in blocks(PAGES[page]):
            names["pet"] = pet  # a block that opens one of its own has closed it
            code = compile(block, f"docs/{page}.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            running = types.FunctionType(code, names)()
            if inspect.isawaitable(running):
                await running
