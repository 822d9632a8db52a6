"""The differences between two traces as lines: where each is, and the text before and after."""

import difflib
import json
from collections.abc import Iterator, Sequence

from agent.tracing.compare import Difference
from agent.tracing.render.overview import heading
from agent.tracing.render.text import harmless, one_line
from agent.tracing.render.tree import Line, Tone
from agent.tracing.trace import Summary

MAX_LINES = 12
"""Lines of one difference, unless all are asked for."""
CONTEXT = 1
"""Equal lines shown around those that differ."""
TONES: dict[str, Tone] = {"-": "bad", "+": "good"}


def difference_lines(
    before: Summary, after: Summary, found: Sequence[Difference], *, whole: bool = False
) -> Iterator[Line]:
    yield Line("", f"--- {heading(before)}", "bad")
    yield Line("", f"+++ {heading(after)}", "good")
    for difference in found:
        yield Line("", f"@@ {one_line(difference.where)}: {one_line(difference.what)}", "strong")
        yield from text_lines_of(difference, whole=whole)


def text_lines_of(difference: Difference, *, whole: bool) -> Iterator[Line]:
    context = 100_000 if whole else CONTEXT
    diff = difflib.unified_diff(_lines(difference.before), _lines(difference.after), lineterm="", n=context)
    lines = [text for text in list(diff)[2:] if not text.startswith("@@")]
    for text in lines if whole else lines[:MAX_LINES]:
        yield Line("", text, TONES.get(text[:1], "plain"))
    if not whole and len(lines) > MAX_LINES:
        yield Line("", f"… {len(lines) - MAX_LINES} more lines; --full shows them", "faint")


def _lines(text: str) -> list[str]:
    """JSON is indented, so that only what differs is shown."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return harmless(text).splitlines()
    indented = json.dumps(value, ensure_ascii=False, indent=1) if isinstance(value, dict | list) else text
    return harmless(indented).splitlines()
