"""Printing: JSON for programs, tables for people, messages on stderr."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from memory.records import Memory

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")

FILE_WIDTH = 160
"""Columns of a table that is written to a file or a pipe."""
MEMORY_COLUMNS = ("id", "content", "subjects", "type", "importance", "created", "expires")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def say(message: str) -> None:
    """A line beside the output: what was decided, what to do next."""
    print(f"hachi: {message}", file=sys.stderr)


def plain(text: str) -> str:
    """Without control characters: remembered text must not drive the terminal."""
    return _CONTROL.sub("", text)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=_as_json))


def json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_as_json)


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_records(
    records: Sequence[T],
    json: bool,
    columns: Sequence[str],
    row: Callable[[T], Sequence[str]],
    *,
    empty: str,
    to_json: Callable[[Any], Any] = asdict,
) -> None:
    """As JSON or as a table; if there are none, `empty` is said."""
    if json:
        print_json([to_json(record) for record in records])
    elif records:
        print_table(columns, map(row, records))
    else:
        say(empty)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in ("id", "when"), overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def memory_row(memory: Memory) -> list[str]:
    """In `MEMORY_COLUMNS`."""
    return [
        short(memory.id),
        memory.content,
        ", ".join(memory.subjects),
        memory.type,
        f"{memory.importance:g}",
        when(memory.created_at),
        when(memory.expires_at) or "never",
    ]


def short(id: str) -> str:
    return id[:8]


def when(moment: datetime | None) -> str:
    """In local time; empty for None."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False)


def progress_bar() -> "Progress":
    """On stderr, if it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty())


def interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str, done: str) -> None:
    """Exits with 1 and "nothing was …" if the answer is no."""
    if not typer.confirm(question):
        say(f"nothing was {done}")
        raise typer.Exit(1)


def write_private_file(path: Path, text: str) -> None:
    """Whole or not at all, and readable by the owner only. Raises OSError with the path."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
