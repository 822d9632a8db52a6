"""Everything that a trace holds, as a tree: the request by section, the output, what was found and left out,
tracebacks. `agent/tracing/render/overview.py` tells the same in short."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.tracing.compare import sections
from agent.tracing.render.overview import afterwards, call_node, heading, pairs, tree, warnings
from agent.tracing.render.text import clipped, count, duration, harmless, one_line, width
from agent.tracing.render.tree import Line, Node, drawn
from agent.tracing.trace import TURN, Trace
from memory.spans import Span

COLUMN = 60
"""Columns of a candidate's content in the table of candidates."""

Values = Mapping[str, Any]


def shown_whole(trace: Trace, after: Sequence[Trace] = ()) -> list[Line]:
    """All in lines, however many."""
    lines = [Line("", heading(trace.summary), "strong"), *drawn(whole(trace))]
    lines += [Line("", text, "bad" if text.startswith("✗") else "warning") for text in warnings(trace)]
    if after:
        lines += drawn(whole_afterwards(after))
    return lines


def whole(trace: Trace) -> Node:
    """Its root tells what was said, and whose it was."""
    root = Node(
        tree(trace).text if trace.summary.kind == TURN else one_line(trace.summary.kind, 40), span=trace.root
    )
    root.add("trace", "faint", _pairs(_about(trace)))
    if incoming := trace.root.data.get("incoming"):
        root.add("heard", block=_value(incoming))
    calls = 0
    for span in trace.root.spans:
        calls += span.kind == "call"
        root.nodes.append(_node(trace, span, calls))
    if (reply := trace.root.data.get("reply")) is not None:
        root.add("reply", "strong", _value(reply))
    if trace.root.error:
        root.add("error", "bad", _text(trace.root.error))
    root.add("made by", "faint", _value({name: trace.made_by.get(name) for name in ("versions", "prompts")}))
    return root


def whole_afterwards(after: Sequence[Trace]) -> Node:
    node = afterwards(after)
    node.nodes = [whole(trace) for trace in after]
    return node


def _about(trace: Trace) -> dict[str, Any]:
    """What a list cannot show of it."""
    summary = trace.summary
    return {
        "id": summary.id,
        "turn": summary.turn_id,
        "conversation": summary.conversation,
        "surface": summary.surface,
        "model": summary.model,
        "message": summary.message_id,
        "process": summary.process,
        "redacted": "yes" if trace.redacted else None,
    }


def _node(trace: Trace, span: Span, calls: int) -> Node:
    if span.kind == "call":
        return _call(trace, span, calls)
    head = " ".join(part for part in (one_line(span.kind, 40), one_line(span.name, 60)) if part)
    node = Node(f"{head}  {_times(span)}", "bad" if _wrong(span) else "plain", span=span)
    if span.error:
        node.add("error", "bad", _text(span.error))
    if span.kind in ("search", "documents"):
        node.nodes += _search(span)
    else:
        for name, value in span.data.items():
            node.add(one_line(name, 60), "bad" if name == "traceback" else "faint", _value(value))
    node.nodes += [_node(trace, inner, 0) for inner in span.spans]
    return node


def _times(span: Span) -> str:
    return (
        f"at {duration(span.at)}, {'took ' + duration(span.took) if span.took is not None else 'not ended'}"
    )


def _wrong(span: Span) -> bool:
    return span.error is not None or span.data.get("ok") is False


def _call(trace: Trace, span: Span, number: int) -> Node:
    node = call_node(span, number)
    asked = span.data.get("request")
    if isinstance(asked, Mapping):
        request = node.add("request", "faint")
        for name, text in sections(trace, str(asked.get("system") or "")).items():
            told = count(len(text), "character")
            request.add(f"system message, {one_line(name, 60)}  {told}", block=_text(text))
        for place, item in enumerate(_listed(asked.get("input")), 1):
            request.nodes.append(_message(f"message {place}", item))
        request.add("tools", block=_text(", ".join(map(str, asked.get("tools") or ()))))
        if asked.get("settings"):
            request.add("settings", block=_value(asked["settings"]))
    if output := _listed(span.data.get("output")):
        wrote = node.add("output", "faint")
        wrote.nodes = [_message(f"item {place}", item) for place, item in enumerate(output, 1)]
    return node


def _message(name: str, item: Any) -> Node:
    """What was said, where it is text; else all of it."""
    if (
        isinstance(item, Mapping)
        and isinstance(item.get("content"), str)
        and set(item) <= {"role", "content"}
    ):
        return Node(f"{name}, {one_line(item.get('role', ''), 40)}", block=_text(item["content"]))
    return Node(name, block=_value(item))


def _search(span: Span) -> Iterator[Node]:
    rest = {name: value for name, value in span.data.items() if name not in ("candidates", "found")}
    if rest:
        yield Node("asked", "faint", block=_pairs(rest))
    candidates = [one for one in span.data.get("candidates") or () if isinstance(one, Mapping)]
    scores = dict(pairs(span.data.get("found")))
    if candidates:
        yield Node(f"candidates  {len(candidates)}", block=candidate_table(candidates, scores))
    elif scores:
        yield Node("found", block=[f"{score:.4f}  {one_line(id, 40)}" for id, score in scores.items()])


CANDIDATE_COLUMNS = ("", "score", "lanes", "id", "content", "left out")


def candidate_rows(candidates: Sequence[Values], found: Mapping[str, float]) -> list[list[str]]:
    """One a candidate, in `CANDIDATE_COLUMNS`; the first says whether it was given to whoever searched."""
    return [
        [
            "✓" if str(one.get("id")) in found else "",
            f"{score:.4f}" if isinstance(score := one.get("score"), int | float) else "",
            _lanes(one.get("lanes")),
            one_line(str(one.get("id", ""))[:8], 8),
            one_line(one.get("content") or "", COLUMN),
            one_line(one.get("left_out") or "", COLUMN),
        ]
        for one in candidates
    ]


def _lanes(lanes: Any) -> str:
    if not isinstance(lanes, Mapping):
        return ""
    return one_line(", ".join(f"{name} {score}" for name, score in lanes.items()), COLUMN)


def candidate_table(candidates: Sequence[Values], found: Mapping[str, float]) -> list[str]:
    return aligned([list(CANDIDATE_COLUMNS), *candidate_rows(candidates, found)])


def aligned(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows of cells as lines, column under column."""
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        gap.join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _pairs(values: Values) -> list[str]:
    told = {name: value for name, value in values.items() if value not in (None, "", [])}
    return aligned(
        [[one_line(name, 40), one_line(_said(value))] for name, value in told.items()] or [["", ""]]
    )


def _said(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _value(value: Any) -> list[str]:
    """JSON in lines; text that is JSON itself is laid out too."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return _text(value)
        if not isinstance(read, dict | list):
            return _text(value)
        value = read
    return _text(json.dumps(value, ensure_ascii=False, indent=2))


def _text(text: str) -> list[str]:
    return harmless(text).expandtabs(4).splitlines() or [""]


def fitting(line: Line, columns: int) -> Line:
    """The line, cut to the width of a screen."""
    return Line(line.branch, clipped(line.text, max(10, columns - width(line.branch))), line.tone)
