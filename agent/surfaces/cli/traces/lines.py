"""Traces at a terminal: a table of turns, and coloured lines of trees and differences."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.table import Column, Table
from rich.text import Text

from agent.surfaces.cli.output import console
from agent.tracing.differences import Difference
from agent.tracing.render.text import as_lines, clipped, duration, money, one_line, quoted, tokens, where
from agent.tracing.render.trace import heading
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import TURN, Summary

COLUMNS = {
    "ID": 8,
    "WHEN": 11,
    "WHERE": 12,
    "USER": 8,
    "SAID": 30,
    "CALLS": 5,
    "TOOLS": 6,
    "TOKENS": 9,
    "COST": 6,
    "DUR": 6,
    "STATUS": 10,
}
"""Each with its width where rows are printed before the next ones are known."""
MIN_WIDTH = 12
"""Of the columns that shrink on a narrow terminal."""
GAP = 2
"""Between two columns."""
MIN_TABLE = 100
"""Columns of the whole table. A narrower terminal wraps its lines, and no column is lost."""
MAX_LINES = 12
"""Lines of one difference, unless all are asked for."""
CONTEXT = 1
"""Equal lines shown around those that differ."""

_STYLES: dict[Tone, str] = {
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "faint": "dim",
}
_SIGNS: dict[str, Tone] = {"-": "bad", "+": "good"}
_STATUS_STYLES = {
    "error": "red",
    "killed": "red",
    "tool_error": "red",
    "malformed": "yellow",
    "running": "yellow",
}


def print_lines(lines: Iterable[Line], *, whole: bool = False) -> None:
    """Print them cut to the width of a terminal, which wraps `whole` ones. In a pipe all are whole."""
    out = console()
    for line in lines:
        if out.is_terminal:
            text = Text.assemble(line.branch, (line.text, _STYLES.get(line.tone, "")))
            out.print(text, no_wrap=True, overflow="ignore" if whole else "ellipsis", soft_wrap=whole)
        else:
            print(line)


def print_summaries(
    summaries: Sequence[Summary], now: datetime, *, headings: bool = True, fixed: bool = False
) -> None:
    """Print a table. With `fixed` widths its rows fit below those of another one."""
    out = console()
    spare = COLUMNS["SAID"] - MIN_WIDTH
    whole = sum(COLUMNS.values()) + GAP * len(COLUMNS)
    out.width = max(out.width, whole - spare if fixed else MIN_TABLE)
    widths = COLUMNS | {"SAID": COLUMNS["SAID"] - max(0, whole - out.width)}
    columns = [
        Column(
            name,
            width=wide if fixed and name != "STATUS" else None,
            min_width=MIN_WIDTH if name in ("SAID", "STATUS") else None,
            no_wrap=name not in ("SAID", "STATUS"),
        )
        for name, wide in widths.items()
    ]
    table = Table(*columns, box=None, padding=(0, GAP, 0, 0), show_header=headings, header_style="dim")
    for summary in summaries:
        *texts, status = (Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells(summary, now))
        status.stylize(_STATUS_STYLES.get(summary.status, "yellow" if summary.trouble else ""))
        table.add_row(*texts, status)
    out.print(table)


def cells(summary: Summary, now: datetime) -> list[str]:
    """In `COLUMNS`."""
    failed = [one_line(name.removesuffix("!"), 40) for name in summary.tools if name.endswith("!")]
    if summary.kind == TURN:
        said = quoted(summary.said, 120) if summary.said else ""
    else:
        of = (summary.turn_id or "").removeprefix("trace_")[:8]
        said = f"{one_line(summary.said or summary.kind, 30)}{f' of {of}' if of else ''}"
    if summary.content != "kept":
        said = "(forgotten)" if summary.content == "forgotten" else "(forgotten for now)"
    why = ", ".join(dict.fromkeys(failed)) if summary.status == "tool_error" else summary.error or ""
    why = ", ".join(filter(None, [why, *summary.trouble]))
    return [
        summary.short,
        _when(summary.started_at, now),
        clipped(where(summary.place), 20),
        one_line(summary.name or summary.user or "-", 16),
        said,
        str(summary.calls),
        f"{len(summary.tools)}{f' {len(failed)}✗' if failed else ''}",
        tokens(summary.usage),
        "" if summary.cost is None else money(summary.cost),
        duration(summary.took),
        f"{summary.status}: {one_line(why, 80)}" if why else summary.status,
    ]


def _when(moment: datetime, now: datetime) -> str:
    local, today = moment.astimezone(), now.astimezone()
    if local.date() == today.date():
        return local.strftime("%H:%M:%S")
    return local.strftime("%m-%d %H:%M" if local.year == today.year else "%Y-%m-%d")


def difference_lines(
    before: Summary, after: Summary, found: Sequence[Difference], *, whole: bool = False
) -> Iterator[Line]:
    yield Line("", f"--- {heading(before)}", "bad")
    yield Line("", f"+++ {heading(after)}", "good")
    for difference in found:
        yield Line("", f"@@ {one_line(difference.where)}: {one_line(difference.what)}", "strong")
        yield from text_lines_of(difference, whole=whole)


def text_lines_of(difference: Difference, *, whole: bool) -> Iterator[Line]:
    before, after = ([] if not text else as_lines(text) for text in (difference.before, difference.after))
    context = len(before) if whole else CONTEXT
    diff = list(difflib.unified_diff(before, after, lineterm="", n=context))
    lines = [text for text in diff[2:] if not text.startswith("@@")]
    for text in lines if whole else lines[:MAX_LINES]:
        yield Line("", text, _SIGNS.get(text[:1], "plain"))
    if not whole and len(lines) > MAX_LINES:
        yield Line("", f"… {len(lines) - MAX_LINES} more lines; --full shows them", "faint")
