"""Write the reference pages of docs/ from signatures and OpenAPI: `python -m tests.reference`."""

import asyncio
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from unittest.mock import MagicMock

import hachi
from agent.surfaces.http.application import app
from agent.tracing.store.traces import Traces
from agent.types.options import OpenOptions, TurnOptions
from hachi.testing import temporary_companion

DOCS = Path(__file__).parent.parent / "docs"
PYTHON, HTTP = DOCS / "python-reference.md", DOCS / "http-reference.md"
GROUPS = tuple("memories tasks documents people conversations sessions admin reminders traces".split())
_UNOPENED = hachi.Companion(MagicMock(traces=Traces(MagicMock())))
SERVICES = {name: type(getattr(_UNOPENED, name)) for name in GROUPS}
FORMER = {"upkeep", "upkeep_model"}
"""Options that are still read, and are not shown."""
COMPANION = ("open", "start", "respond", "stream", "learn", "preview_learn", "settle", "runtime", "close")
HEADER = "x-"
"""How the names of headers begin, which the page of HTTP explains."""


def first_sentence(text: str | None) -> str:
    """Return the first sentence of a docstring, on one line that a cell of a table can hold."""
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[^.\s]{2}\.) (?=[A-Z`])", paragraph)[0]
    return sentence.removesuffix(".").replace("|", "\\|")


def call(name: str, method: Callable[..., Any]) -> str:
    """Return a call with its arguments: those with a default as ``limit=10``, or ``limit=`` for None."""
    parts = []
    for one in inspect.signature(method).parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            parts.append("…")
        elif one.default is one.empty:
            parts.append(one.name)
        else:
            shown = repr(one.default) if isinstance(one.default, str | int | float) else ""
            parts.append(f"{one.name}={shown}")
    return f"`{name}({', '.join(parts)})`"


def row(name: str, method: Callable[..., Any]) -> str:
    """Return the row of a method."""
    return f"| {call(name, method)} | {first_sentence(method.__doc__)} |"


def limits() -> Iterator[tuple[str, str, str]]:
    """Yield each method that takes a `limit`, its default and the most."""
    for group, service in SERVICES.items():
        for name, method in inspect.getmembers(service, inspect.isfunction):
            one = inspect.signature(method).parameters.get("limit")
            if one and name[0] != "_":
                yield f"{group}.{name}", str(one.default), str(get_args(one.annotation)[1].schema["maximum"])


def options(shape: Any) -> Iterator[str]:
    """Yield the rows of a TypedDict's fields, with the docstring under each."""
    lines = inspect.getsource(shape)
    for name in shape.__annotations__:
        if name not in FORMER:
            told = re.search(rf'^    {name}: .*?\n    """(.*?)"""', lines, re.MULTILINE | re.DOTALL)
            own = told and not re.search(r"^    \w+: ", told[0].partition("\n")[2], re.MULTILINE)
            yield f"| `{name}` | {first_sentence(told[1]) if told and own else ''} |"


def tree(kind: type, depth: int = 0) -> Iterator[str]:
    """Yield the rows of an error and of those below it."""
    told = first_sentence(kind.__dict__.get("__doc__"))
    yield f"| {'&emsp;' * depth}`{kind.__name__}` | {told} |"
    for below in kind.__subclasses__():
        if below.__name__ in hachi.__all__:
            yield from tree(below, depth + 1)


def records() -> Iterator[str]:
    """Yield the rows of what can be imported, with the fields of a record."""
    for name in sorted(set(hachi.__all__) - {"Companion"}):
        kind = getattr(hachi, name)
        if isinstance(kind, type) and issubclass(kind, hachi.HachiError):
            continue
        named = (
            [f"`{one.name}`" for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
        )
        told = "" if (kind.__doc__ or "").startswith(f"{name}(") else first_sentence(kind.__doc__)
        yield f"| `{name}` | {told} | {', '.join(named) if name != 'TurnContext' else ''} |"


def python_page() -> str:
    """Return the reference of the Python API."""
    parts = [
        "# Python, all of it",
        "Made from the code by `python -m tests.reference`; [Python](python.md) says how it is used.\n"
        "A method with `…` takes the options of its table.",
        "## The companion",
        "| method | |\n|---|---|\n"
        + "\n".join(row(name, getattr(hachi.Companion, name)) for name in COMPANION),
        "| option of `open` and `start` | |\n|---|---|\n" + "\n".join(options(OpenOptions)),
        "| option of `respond` and `stream` | |\n|---|---|\n" + "\n".join(options(TurnOptions)),
    ]
    for group, service in SERVICES.items():
        rows = (
            row(name, method)
            for name, method in inspect.getmembers(service, inspect.isfunction)
            if name[0] != "_"
        )
        parts.append(f"## `pet.{group}`\n\n| method | |\n|---|---|\n" + "\n".join(rows))
    listed = (f"| `{name}` | {default} | {most} |" for name, default, most in sorted(limits()))
    parts.append("## Limits of lists\n\n| method | default | most |\n|---|---|---|\n" + "\n".join(listed))
    parts.append("## What `hachi` exports\n\n| name | | fields |\n|---|---|---|\n" + "\n".join(records()))
    parts.append("## Errors\n\n| error | |\n|---|---|\n" + "\n".join(tree(hachi.HachiError)))
    return "\n\n".join(parts) + "\n"


async def http_page() -> str:
    """Return the reference of the HTTP API."""
    async with temporary_companion() as pet:
        paths = app(pet, pet.settings).openapi()["paths"]
    shown: dict[str, list[str]] = {}
    for address, methods in paths.items():
        for method, operation in methods.items():
            asked = [
                f"`{one['name']}`"
                for one in operation.get("parameters", ())
                if one["in"] == "query" and not one["name"].startswith(HEADER)
            ]
            told = first_sentence(operation.get("description"))
            rows = shown.setdefault(operation["tags"][0], [])
            rows.append(f"| {method.upper()} | `{address}` | {', '.join(asked)} | {told} |")
    head = "| | address | query | |\n|---|---|---|---|\n"
    parts = [
        "# HTTP, every address",
        "Made from OpenAPI by `python -m tests.reference`; [HTTP](http.md) says how it is used.\n"
        "A server shows all of it, with each body, at `/openapi.json`.",
        *(f"## {tag[0].upper()}{tag[1:]}\n\n{head}" + "\n".join(rows) for tag, rows in shown.items()),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PYTHON.write_text(python_page(), "utf-8")
    HTTP.write_text(asyncio.run(http_page()), "utf-8")
