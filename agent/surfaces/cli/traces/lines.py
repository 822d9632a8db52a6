"""Traces as lines of a terminal: a row each for lists, and colours where somebody sees them."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

from agent.surfaces.cli.output import WIDE
from agent.tracing.render.text import clipped, duration, one_line, quoted, tokens, where, width
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import TURN, Summary

COLUMNS = ("ID", "WHEN", "WHERE", "USER", "SAID", "CALLS", "TOOLS", "TOKENS", "DUR", "STATUS")
WIDTHS = (8, 11, 5, 8, 30, 5, 6, 9, 6, 10)
"""Where rows come one by one, and are not known beforehand."""
SAID, STATUS = COLUMNS.index("SAID"), COLUMNS.index("STATUS")
LEAST_SAID = 12
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
    """Cut to the width of the screen; whole where nobody looks."""
    at_terminal = sys.stdout.isatty()
    for line in lines:
        shown = line.fitting(columns()) if at_terminal else line
        print(f"{shown.branch}{coloured(shown.text, shown.tone)}".rstrip())


def columns() -> int:
    """Of the screen; of a file or a pipe as many as every table here has."""
    return shutil.get_terminal_size((WIDE, 24)).columns


def coloured(text: str, tone: Tone) -> str:
    code = _CODES.get(tone)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text and coloured_here() else text


def coloured_here() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_summaries(summaries: Sequence[Summary], now: datetime) -> None:
    rows = [cells(summary, now) for summary in summaries]
    widths = [max(width(row[at]) for row in [COLUMNS, *rows]) for at in range(len(COLUMNS))]
    print(coloured(_row(COLUMNS, widths, "plain").rstrip(), "faint"))
    for summary, row in zip(summaries, rows, strict=True):
        print(_row(row, widths, _TONES.get(summary.status, "plain")))


def heads() -> str:
    return coloured(_row(COLUMNS, WIDTHS, "plain").rstrip(), "faint")


def one_row(summary: Summary, now: datetime) -> str:
    return _row(cells(summary, now), WIDTHS, _TONES.get(summary.status, "plain"))


def _row(row: Sequence[str], widths: Sequence[int], tone: Tone) -> str:
    """What was said, and what went wrong, share the room that the others leave."""
    fixed = sum(wide + len(GAP) for at, wide in enumerate(widths) if at not in (SAID, STATUS))
    room = max(2 * LEAST_SAID, columns() - fixed - len(GAP))
    status = clipped(row[STATUS], max(LEAST_SAID, room - min(widths[SAID], max(LEAST_SAID, room // 2))))
    said = max(LEAST_SAID, min(widths[SAID], room - width(status)))
    sized = [said if at == SAID else wide for at, wide in enumerate(widths)]
    padded = [_padded(clipped(row[at], sized[at]), sized[at]) for at in range(STATUS)]
    return GAP.join([*padded, coloured(status, tone)]).rstrip()


def _padded(cell: str, wide: int) -> str:
    return cell + " " * (wide - width(cell))


def cells(summary: Summary, now: datetime) -> list[str]:
    """In `COLUMNS`."""
    failed = [one_line(name.removesuffix("!"), 40) for name in summary.tools if name.endswith("!")]
    if summary.kind == TURN:
        said = quoted(summary.said, 60) if summary.said else ""
    else:
        of = (summary.turn_id or "").removeprefix("trace_")[:8]
        said = f"{one_line(summary.kind, 30)}{f' of {of}' if of else ''}"
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
        _status(summary, failed),
    ]


def _when(moment: datetime, now: datetime) -> str:
    here, today = moment.astimezone(), now.astimezone()
    if here.date() == today.date():
        return here.strftime("%H:%M:%S")
    return here.strftime("%m-%d %H:%M" if here.year == today.year else "%Y-%m-%d")


def _status(summary: Summary, failed: Sequence[str]) -> str:
    """With what it was."""
    why = ", ".join(dict.fromkeys(failed)) if summary.status == "tool_error" else summary.error or ""
    return f"{summary.status}: {one_line(why, 80)}" if why else summary.status
