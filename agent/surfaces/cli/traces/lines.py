"""Traces as lines of a terminal: one row each in lists, coloured at a terminal."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

from agent.surfaces.cli.output import FILE_WIDTH
from agent.tracing.render.text import clipped, duration, one_line, quoted, tokens, where, width
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import TURN, Summary

COLUMNS = ("ID", "WHEN", "WHERE", "USER", "SAID", "CALLS", "TOOLS", "TOKENS", "DUR", "STATUS")
WIDTHS = (8, 11, 5, 8, 30, 5, 6, 9, 6, 10)
"""Where rows are printed before the next ones are known."""
SAID, STATUS = COLUMNS.index("SAID"), COLUMNS.index("STATUS")
MIN_SAID = 12
GAP = "  "

_TONES: dict[str, Tone] = {
    "error": "bad",
    "killed": "bad",
    "tool_error": "bad",
    "malformed": "warning",
    "running": "warning",
}
_CODES: dict[Tone, str] = {"strong": "1", "good": "32", "bad": "31", "warning": "33", "faint": "2"}


def print_lines(lines: Iterable[Line]) -> None:
    """Cut to the width of a terminal; whole in a file or a pipe."""
    at_terminal = sys.stdout.isatty()
    for line in lines:
        shown = line.fitting(_terminal_width()) if at_terminal else line
        print(f"{shown.branch}{_coloured(shown.text, shown.tone)}".rstrip())


def _terminal_width() -> int:
    return shutil.get_terminal_size((FILE_WIDTH, 24)).columns


def _coloured(text: str, tone: Tone) -> str:
    code = _CODES.get(tone)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return f"\x1b[{code}m{text}\x1b[0m" if code and text and sys.stdout.isatty() and not plain else text


def print_summaries(summaries: Sequence[Summary], now: datetime) -> None:
    rows = [cells(summary, now) for summary in summaries]
    widths = [max(width(row[at]) for row in [COLUMNS, *rows]) for at in range(len(COLUMNS))]
    print(headings(widths))
    for summary, row in zip(summaries, rows, strict=True):
        print(_row(row, widths, _TONES.get(summary.status, "plain")))


def headings(widths: Sequence[int] = WIDTHS) -> str:
    return _coloured(_row(COLUMNS, widths, "plain"), "faint")


def summary_line(summary: Summary, now: datetime) -> str:
    """One row in `WIDTHS`."""
    return _row(cells(summary, now), WIDTHS, _TONES.get(summary.status, "plain"))


def _row(row: Sequence[str], widths: Sequence[int], tone: Tone) -> str:
    """The message and the status share the room that the other columns leave."""
    fixed = sum(wide + len(GAP) for at, wide in enumerate(widths) if at not in (SAID, STATUS))
    room = max(2 * MIN_SAID, _terminal_width() - fixed - len(GAP))
    status = clipped(row[STATUS], max(MIN_SAID, room - min(widths[SAID], max(MIN_SAID, room // 2))))
    said = max(MIN_SAID, min(widths[SAID], room - width(status)))
    sized = [said if at == SAID else wide for at, wide in enumerate(widths[:STATUS])]
    texts = [clipped(cell, wide) for cell, wide in zip(row, sized, strict=False)]
    padded = [text + " " * (wide - width(text)) for text, wide in zip(texts, sized, strict=True)]
    return GAP.join([*padded, _coloured(status, tone)]).rstrip()


def cells(summary: Summary, now: datetime) -> list[str]:
    """In `COLUMNS`."""
    failed = [one_line(name.removesuffix("!"), 40) for name in summary.tools if name.endswith("!")]
    if summary.kind == TURN:
        said = quoted(summary.said, 60) if summary.said else ""
    else:
        of = (summary.turn_id or "").removeprefix("trace_")[:8]
        said = f"{one_line(summary.kind, 30)}{f' of {of}' if of else ''}"
    why = ", ".join(dict.fromkeys(failed)) if summary.status == "tool_error" else summary.error or ""
    return [
        summary.short,
        _when(summary.started_at, now),
        clipped(where(summary.place), 20),
        one_line(summary.user or "-", 16),
        said,
        str(summary.calls),
        f"{len(summary.tools)}{f' {len(failed)}✗' if failed else ''}",
        tokens(summary.usage),
        duration(summary.took),
        f"{summary.status}: {one_line(why, 80)}" if why else summary.status,
    ]


def _when(moment: datetime, now: datetime) -> str:
    local, today = moment.astimezone(), now.astimezone()
    if local.date() == today.date():
        return local.strftime("%H:%M:%S")
    return local.strftime("%m-%d %H:%M" if local.year == today.year else "%Y-%m-%d")
