"""What is remembered, as it is printed: as JSON for programs, as tables for people."""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memory.records import Decision, Hit, Memory, MemoryUpdate, Task

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

WIDE = 160
"""Columns of a table that is written to a file or a pipe."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Without control characters: what was said to Hachi must not drive the terminal it is shown on."""
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
    raise TypeError(f"{type(value).__name__} has no shape in JSON")


MEMORY_FIELDS = (
    "id",
    "content",
    "subjects",
    "created_at",
    "expires_at",
    "source",
    "type",
    "importance",
    "last_accessed_at",
    "owners",
    "place",
    "message_id",
)


def memory_json(memory: Memory) -> dict[str, Any]:
    return {field: getattr(memory, field) for field in MEMORY_FIELDS}


def hit_json(hit: Hit) -> dict[str, Any]:
    """The fields of a memory; null where a message has none of them."""
    fields = memory_json(hit.memory) if hit.memory else dict.fromkeys(MEMORY_FIELDS) | {"subjects": []}
    return fields | {
        "id": hit.id,
        "content": hit.content,
        "created_at": hit.created_at,
        "message_id": hit.message_id,
        "score": hit.score,
        "kind": hit.kind,
        "author": hit.author,
    }


def decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "content": decision.content,
        "action": decision.action,
        "id": decision.id,
        "expires_at": decision.expires_at,
    }


def update_json(update: MemoryUpdate) -> dict[str, Any]:
    return asdict(update)


def task_json(task: Task) -> dict[str, Any]:
    return asdict(task)


def short(id: str) -> str:
    return id[:8]


def when(moment: datetime | None) -> str:
    """By the clock of this place."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def memory_row(memory: Memory) -> list[str]:
    return [
        short(memory.id),
        memory.content,
        ", ".join(memory.subjects),
        memory.type,
        f"{memory.importance:g}",
        when(memory.created_at),
        when(memory.expires_at) or "never",
    ]


MEMORY_COLUMNS = ("id", "content", "subjects", "type", "importance", "created", "expires")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in ("id", "when"), overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)


def console() -> "Console":
    from rich.console import Console

    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(file=sys.stdout, width=wide, highlight=False, markup=False)


def progress_bar() -> "Progress":
    """On stderr, and only where somebody sees it."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty())
