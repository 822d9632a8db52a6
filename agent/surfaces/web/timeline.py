"""Lay out a trace as rows on a time scale: each span of its tree has a bar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.tracing.render.trace import tree
from agent.tracing.render.tree import Node
from agent.tracing.trace import Trace

WIDTH = 1_000.0
"""The full width of a bar's drawing, in its own units."""
MIN_BAR = 4.0
"""The minimum width of a bar, in the same units, so that it stays visible."""
MAX_ROWS = 400
"""Maximum number of rows of one trace on a page."""


@dataclass(frozen=True, slots=True)
class Row:
    address: str
    """``trace.span``: the number of the trace on the page, and the number of the span by start time."""
    node: Node
    branch: str
    """The lines of the tree that are drawn before the text."""
    start: float
    width: float
    """The width of its bar, in units of `WIDTH`."""


@dataclass(frozen=True, slots=True)
class SpanTree:
    trace: Trace
    number: int
    """0 is the trace itself; background jobs have higher numbers."""
    length: float
    """Seconds that the whole width represents."""
    rows: Sequence[Row]

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """Return the position and seconds of each mark on the scale."""
        return [(WIDTH * part, self.length * part) for part in (0.0, 0.25, 0.5, 0.75)]


def span_tree(trace: Trace, number: int) -> SpanTree:
    length = max([1e-6, *(span.at + (span.took or 0.0) for span in trace.spans())])
    rows = [
        _row(f"{number}.{index}", node, branch, length)
        for index, (node, branch) in enumerate(_spans(tree(trace)))
    ]
    return SpanTree(trace, number, length, rows)


def _row(address: str, node: Node, branch: str, length: float) -> Row:
    at, took = (node.span.at, node.span.took) if node.span else (0.0, 0.0)
    left = min(WIDTH - MIN_BAR, WIDTH * at / length)
    lasted = length - at if took is None else took
    return Row(address, node, branch, left, min(WIDTH - left, max(MIN_BAR, WIDTH * lasted / length)))


def _spans(node: Node, branch: str = "", below: str = "") -> Iterator[tuple[Node, str]]:
    """Yield the spans, each with the lines of the tree before it."""
    yield node, branch
    inner = [one for one in node.nodes if one.span]
    for one in inner:
        last = one is inner[-1]
        yield from _spans(one, f"{below}{'└' if last else '├'} ", f"{below}{'  ' if last else '│ '}")
