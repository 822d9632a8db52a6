"""Where everything stands in time: a trace and what was done after it as rows, each with a bar."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tracing.trace import Status, Trace
from memory.spans import Span

WIDE = 1_000.0
"""Units of the whole width of a bar's drawing."""
THIN = 4.0
"""The least width of a bar, so that what took no time is seen."""
MOST = 400
"""Rows of one trace that a page shows."""
EXCERPT = 80
"""Characters of what a row says beside its name."""


@dataclass(frozen=True, slots=True)
class Row:
    address: str
    """``tree.number``: which of the trees of the page, and which span of it in the order they began."""
    span: Span
    depth: int
    branch: str
    """The lines of the tree before its name."""
    title: str
    note: str
    """In a few words what came of it."""
    status: Status
    left: float
    width: float
    """Of its bar, in units of WIDE."""


@dataclass(frozen=True, slots=True)
class Tree:
    trace: Trace
    number: int
    length: float
    """Seconds that its whole width stands for."""
    rows: Sequence[Row]
    more: int
    """Spans beyond those of the rows."""

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """Place and seconds of the marks of its scale."""
        return [(WIDE * part, self.length * part) for part in (0.0, 0.25, 0.5, 0.75)]


def tree(trace: Trace, number: int = 0) -> Tree:
    length = max([1e-6, *(span.at + (span.took or 0.0) for span in trace.spans())])
    rows = []
    calls = more = 0
    for index, (span, depth, branch) in enumerate(_walk(trace.root)):
        if index >= MOST:
            more += 1
            continue
        calls += span.kind == "call"
        title = f"call {calls}" if span.kind == "call" else span.kind
        left = min(WIDE - THIN, WIDE * span.at / length)
        lasted = length - span.at if span.took is None else span.took
        width = min(WIDE - left, max(THIN, WIDE * lasted / length))
        note, status = noted(span), status_of(span, trace)
        rows.append(Row(f"{number}.{index}", span, depth, branch, title, note, status, left, width))
    return Tree(trace, number, length, rows, more)


def _walk(root: Span) -> Iterator[tuple[Span, int, str]]:
    """Without recursion: how deep a trace goes is for others to say."""
    waiting = [(root, 0, "", "")]
    while waiting:
        span, depth, branch, below = waiting.pop()
        yield span, depth, branch
        last = len(span.spans) - 1
        for place in range(last, -1, -1):
            ends = place == last
            if depth < 12:
                lines = f"{below}{'└' if ends else '├'} ", f"{below}{'  ' if ends else '│ '}"
            else:
                lines = branch, below
            waiting.append((span.spans[place], depth + 1, *lines))


def span_at(trees: Sequence[Trace], address: str) -> tuple[Trace, Span]:
    """Raises LookupError."""
    number, _, place = address.partition(".")
    if not (number.isascii() and number.isdigit() and place.isascii() and place.isdigit()):
        raise LookupError(address)
    if len(number) > 6 or len(place) > 9:
        raise LookupError(address)
    trace = trees[int(number)]
    for index, (span, _, _) in enumerate(_walk(trace.root)):
        if index == int(place):
            return trace, span
    raise LookupError(address)


def status_of(span: Span, trace: Trace) -> Status:
    if span.error:
        return "error"
    if span.data.get("ok") is False:
        return "tool_error"
    if span.data.get("well_formed") is False:
        return "malformed"
    if span.took is None and trace.summary.status in ("running", "killed"):
        return trace.summary.status
    return "ok"


def noted(span: Span) -> str:
    """What came of it, in a few words."""
    data = span.data
    if span.error:
        return span.error[:EXCERPT]
    if span.kind == "call" and isinstance(data.get("usage"), Mapping):
        used = data["usage"]
        return f"{used.get('input') or 0:,} → {used.get('output') or 0:,} tokens"
    if span.kind == "tool":
        return str(data.get("arguments") or "")[:EXCERPT]
    if span.kind in ("search", "documents"):
        return _found(data)
    if span.kind == "decision":
        decisions = [one for one in data.get("decisions") or () if isinstance(one, Mapping)]
        return ", ".join(str(one.get("action", "")) for one in decisions)[:EXCERPT]
    if span.kind == "answer":
        answer = data.get("answer")
        return str(answer.get("message") or "")[:EXCERPT] if isinstance(answer, Mapping) else ""
    return ""


def _found(data: Mapping[str, Any]) -> str:
    parts = [f"“{str(data['query'])[:EXCERPT]}”"] if data.get("query") else []
    found, candidates = data.get("found"), data.get("candidates")
    if isinstance(found, list):
        of = f" of {len(candidates)}" if isinstance(candidates, list) else ""
        parts.append(f"{len(found)}{of}")
    return " ".join(parts)
