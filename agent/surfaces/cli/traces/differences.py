"""What differs between two traces, as lines: what it is in, and the text before and after."""

import difflib
import json
from collections.abc import Iterator, Sequence

from agent.tracing.compare import Difference
from agent.tracing.render.overview import heading
from agent.tracing.render.text import harmless, one_line
from agent.tracing.render.tree import Line
from agent.tracing.trace import Summary

SHORT = 12
"""Lines of one difference that are shown, unless all are asked for."""
AROUND = 1
"""Lines that are the same, shown around those that are not."""


def difference_lines(
    before: Summary, after: Summary, found: Sequence[Difference], *, whole: bool = False
) -> Iterator[Line]:
    yield Line("", f"--- {heading(before)}", "bad")
    yield Line("", f"+++ {heading(after)}", "good")
    for difference in found:
        yield Line("", f"@@ {one_line(difference.where)}: {one_line(difference.what)}", "strong")
        lines = list(_unified(difference.before, difference.after, 100_000 if whole else AROUND))
        yield from lines if whole else lines[:SHORT]
        if not whole and len(lines) > SHORT:
            yield Line("", f"… {len(lines) - SHORT} more lines; --full shows them", "faint")


def _unified(before: str, after: str, around: int) -> Iterator[Line]:
    told = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=around)
    for text in list(told)[2:]:  # without the names of files that there are not
        if not text.startswith("@@"):
            yield Line("", text, {"-": "bad", "+": "good"}.get(text[:1], "plain"))  # type: ignore[arg-type]


def _lines(text: str) -> list[str]:
    """JSON is laid out, so that only what differs is shown."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return harmless(text).splitlines()
    laid_out = json.dumps(value, ensure_ascii=False, indent=1) if isinstance(value, dict | list) else text
    return harmless(laid_out).splitlines()
