"""Traces at a terminal: rows of a table of turns, and coloured lines of trees and differences."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent.surfaces.cli.output import console, print_table
from agent.tracing.differences import Difference
from agent.tracing.render.text import as_lines, clipped, duration, money, one_line, quoted, tokens, where
from agent.tracing.render.trace import heading
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import TURN, Summary

WHICH = "id, its first characters, or `last` for the newest turn."
TraceId = Annotated[str, typer.Argument(metavar="ID", help=f"An {WHICH}")]

COLUMNS = tuple("id when where user said calls tools tokens cost took status".split())
WIDE = 100
"""Columns that the table needs; a narrower terminal gets lines."""
MAX_LINES = 12
"""Maximum number of lines of one difference that are shown, unless all are requested."""

_STYLES: dict[Tone, str] = {
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "faint": "dim",
}
_SIGNS: dict[str, Tone] = {"-": "bad", "+": "good"}


def print_lines(lines: Iterable[Line], *, whole: bool = False) -> None:
    """Print the lines, cut to the terminal's width. With `whole`, and in a pipe, they are not cut."""
    from rich.text import Text  # imported here because the help does not need it

    out = console()
    for line in lines:
        if out.is_terminal:
            text = Text.assemble(line.branch, (line.text, _STYLES.get(line.tone, "")))
            out.print(text, no_wrap=True, overflow="ignore" if whole else "ellipsis", soft_wrap=whole)
        else:
            print(line)


def print_turns(turns: Sequence[Summary]) -> None:
    """Print a table; on a narrow terminal, one line for each turn."""
    if console().width < WIDE:
        print_lines(map(turn_line, turns))
    else:
        print_table(COLUMNS, [row(one, datetime.now(UTC)) for one in turns])


def row(summary: Summary, now: datetime) -> list[str]:
    """Return the cells of a row, in `COLUMNS`."""
    failed = [name for name in summary.tools if name.endswith("!")]
    return [
        summary.short,
        _when(summary.started_at, now),
        clipped(where(summary.place), 20),
        one_line(summary.name or summary.user or "-", 16),
        _said(summary),
        str(summary.calls),
        f"{len(summary.tools)}{f' {len(failed)}✗' if failed else ''}",
        tokens(summary.usage),
        "" if summary.cost is None else money(summary.cost),
        duration(summary.took),
        _status(summary),
    ]


def turn_line(summary: Summary) -> Line:
    """Return the line of a turn in `hachi traces tail`."""
    tone: Tone = "plain" if summary.status == "ok" and not summary.trouble else "warning"
    who = one_line(summary.name or summary.user or "-", 16)
    return Line("", "  ".join([heading(summary), f"{who}: {_said(summary)}", *summary.trouble]), tone)


def _said(summary: Summary) -> str:
    if summary.content != "kept":
        return "(forgotten)" if summary.content == "forgotten" else "(forgotten for now)"
    if summary.kind == TURN:
        return quoted(summary.said, 60) if summary.said else ""
    of = (summary.turn_id or "").removeprefix("trace_")[:8]
    return f"{one_line(summary.said or summary.kind, 30)}{f' of {of}' if of else ''}"


def _status(summary: Summary) -> str:
    """Return the status, with the error if there is one."""
    failed = dict.fromkeys(one_line(name[:-1], 40) for name in summary.tools if name.endswith("!"))
    wrong = ", ".join(failed) if summary.status == "tool_error" else summary.error or ""
    wrong = "" if summary.status == "stopped" else wrong
    why = ", ".join(filter(None, [wrong, *summary.trouble]))
    return f"{summary.status}: {one_line(why, 80)}" if why else summary.status


def _when(moment: datetime, now: datetime) -> str:
    local, today = moment.astimezone(), now.astimezone()
    if local.date() == today.date():
        return local.strftime("%H:%M:%S")
    return local.strftime("%m-%d %H:%M" if local.year == today.year else "%Y-%m-%d")


def difference_lines(
    before: Summary, after: Summary, differences: Sequence[Difference], *, whole: bool = False
) -> Iterator[Line]:
    yield Line("", f"--- {heading(before)}", "bad")
    yield Line("", f"+++ {heading(after)}", "good")
    for one in differences:
        yield Line("", f"@@ {one_line(one.where)}: {one_line(one.what)}", "strong")
        yield from changed_lines(one, whole=whole)


def changed_lines(difference: Difference, *, whole: bool) -> Iterator[Line]:
    """Yield the lines that differ; with `whole`, all lines."""
    before, after = ([] if not text else as_lines(text) for text in (difference.before, difference.after))
    diff = list(difflib.unified_diff(before, after, lineterm="", n=len(before) if whole else 1))
    lines = [text for text in diff[2:] if not text.startswith("@@")]
    for text in lines if whole else lines[:MAX_LINES]:
        yield Line("", text, _SIGNS.get(text[:1], "plain"))
    if not whole and len(lines) > MAX_LINES:
        yield Line("", f"… {len(lines) - MAX_LINES} more lines; --full shows them", "faint")
