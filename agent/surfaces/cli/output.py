"""Print the result of a command: JSON for programs, tables for people, messages on stderr. Ask before
deleting.

A command returns an `Output`, mostly by `table_of(records, columns, empty=…)`. `columns` maps a heading to
the attribute that it shows, or to a function of the record.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent.tracing.render.text import harmless, json_text
from agent.types.records_json import describe_cascade, describe_forgotten, forgotten_json
from memory.errors import StoreUnavailable
from memory.records import ForgetCandidate, Forgotten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from agent.services.admin import AdminService
    from memory.sql.engine import Database

Columns = Mapping[str, str | Callable[[Any], object]]
plain = harmless
"""Escapes characters that control the terminal, hide text or change its direction."""

FILE_WIDTH, NARROW = 160, 120
"""Columns of a table in a file or a pipe. A terminal with fewer than `NARROW` columns leaves some out."""
SPARE_COLUMNS = ("importance", "type", "subjects", "place", "told by")
"""Columns that a narrow terminal leaves out; `--json` has them."""
SHORT = 20
"""Characters up to which a text, such as an id or a time, is never wrapped or cut."""


def say(message: str) -> None:
    """Print a message on stderr, apart from the output."""
    print(f"hachi: {plain(message)}", file=sys.stderr)


@dataclass(frozen=True)
class Output:
    """What a command prints when it ends."""

    data: Any
    """For `--json`."""
    text: str | Callable[[], object]
    """For people: the text, or a function that prints it."""
    code: int = 0
    """The exit code."""

    def print(self, json: bool) -> None:
        if json:
            print(json_text(self.data, indent=2))
        elif isinstance(self.text, str):
            print(plain(self.text))
        else:
            self.text()
        if self.code:
            raise typer.Exit(self.code)


def table_of(
    records: Sequence[Any],
    columns: Columns,
    *,
    empty: str,
    title: str = "",
    to_json: Callable[[Any], Any] = asdict,
) -> Output:
    """Return records as a table below its title. If there are none, `empty` is printed."""

    def table() -> None:
        if records:
            if title:
                say(title)
            print_records(columns, records)
        else:
            say(empty)

    return Output([to_json(record) for record in records], table)


def print_records(columns: Columns, records: Iterable[Any]) -> None:
    print_table([*columns], ([cell(one, column) for column in columns.values()] for one in records))


def cell(record: Any, column: str | Callable[[Any], object]) -> str:
    """Return a value as people read it: the beginning of an id, or a time in this machine's zone."""
    value = getattr(record, column) if isinstance(column, str) else column(record)
    if column == "id":
        return short(str(value))
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, list | tuple):
        return ", ".join(value)
    if value is None or isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. Longer texts wrap."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out, table = console(), Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[Text(plain(cell)) for cell in row] for row in rows]
    shown = [at for at, name in enumerate(columns) if out.width >= NARROW or name not in SPARE_COLUMNS]
    for at in shown:
        table.add_column(
            columns[at], no_wrap=all(row[at].cell_len <= SHORT for row in cells), overflow="fold"
        )
    for row in cells:
        table.add_row(*(row[at] for at in shown))
    out.print(table)


def memory_columns(names: Mapping[str, str]) -> Columns:
    """Return the columns of memories. `names` maps the ids of people to their names."""
    return {
        "id": "id",
        "content": "content",
        "subjects": "subjects",
        "type": "type",
        "importance": "importance",
        "place": "place",
        "told by": lambda memory: names.get(memory.user_id, memory.user_id),
        "created": "created_at",
        "expires": lambda memory: memory.expires_at or "never",
    }


def forgotten(receipt: Forgotten, what: str) -> Output:
    return Output(forgotten_json(receipt), forgotten_text(receipt, what))


def forgotten_text(receipt: Forgotten, what: str) -> str:
    """Say what was forgotten, what was forgotten with it, and how to undo that."""
    lines = [f"forgotten {what}", f"taken: {describe_forgotten(receipt)}"]
    if receipt.kept:
        ids = " ".join(map(short, receipt.kept))
        lines.append(f"replies are kept that may tell it in other words: {ids}")
    if receipt.undo_id:
        until = f"until {when(receipt.undo_until)}"
        lines.append(f"`hachi memories restore {short(receipt.undo_id)}` brings it back, {until}")
    if receipt.offered:
        lines.append("kept, and forgotten too by:")
        lines += [f"  {forget_command(one)}" for one in receipt.offered]
    return "\n".join(lines)


def forget_command(record: ForgetCandidate) -> str:
    """Return the command that forgets the candidate, with a description of it."""
    kind = "" if record.kind == "memory" else f" --kind {record.kind}"
    return f"hachi memories delete {short(record.id)}{kind}  # {record.content}"


def what_goes(named: ForgetCandidate) -> str:
    """Say what would be forgotten: the messages that go whole, and how many replies."""
    messages = [f"  “{text}”" for text in named.messages if text != named.content]
    return "\n".join(filter(None, [named.content, *messages, describe_cascade(named)]))


def short(id: str) -> str:
    return id[:8]


def when(moment: datetime | None) -> str:
    """Return the time in this machine's zone; empty for None."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def console() -> "Console":
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def progress_bar() -> "Progress":
    """Return a progress bar on stderr; it is hidden if stderr is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty())


async def give_back(where: "AdminService | Database") -> None:
    """Shrink the database's files after a deletion. If another process prevents that, say so; the data is
    deleted anyway."""
    try:
        await where.give_back()
    except StoreUnavailable as error:
        say(f"the files keep their size: {error}")


def interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def confirm(
    yes: bool, done: str, question: str, preview: str | Callable[[], Awaitable[str]] = ""
) -> None:
    """Show the preview and ask before something is deleted for good; with `yes` do nothing. Exits with 1 and
    "nothing was `done`" if the answer is no, and with 2 without a terminal."""
    if yes:
        return
    if not interactive():
        raise typer.BadParameter(f"without a terminal, this needs --yes; nothing was {done}")
    if preview:
        print(plain(preview if isinstance(preview, str) else await preview()))
    if not typer.confirm(question):
        say(f"nothing was {done}")
        raise typer.Exit(1)


def write_output(file: Path | None, text: str | bytes, what: str) -> None:
    """Write to stdout (None or "-") or to a file, whole or not at all, readable by its owner only. Then say
    that `what` was written. Raises OSError with the path."""
    content = text if isinstance(text, bytes) else text.encode("utf-8")
    if file is None or str(file) == "-":
        if isinstance(text, str):
            sys.stdout.write(text)
        else:
            sys.stdout.buffer.write(text)
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as out:
            out.write(content)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(file)) from error
    say(f"{what} in {file}")
