"""Renders a whole trace as a tree: requests, outputs, search candidates, tracebacks. `overview.py` renders
a short version."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.tracing.compare import sections
from agent.tracing.render.overview import framed, jobs_node, title
from agent.tracing.render.spans import call_node, span_node
from agent.tracing.render.text import as_lines, count, json_text, one_line, text_lines
from agent.tracing.render.tree import Line, Node, aligned
from agent.tracing.trace import Trace, mappings, read_data, scored_ids
from memory.process.spans import Span

COLUMN = 60
"""Columns of a candidate's content in the table of candidates."""
FIXED_SECTIONS = frozenset({"persona", "rules"})
"""Sections of the system message that are the same in every turn."""


def full_lines(trace: Trace, jobs: Sequence[Trace] = ()) -> list[Line]:
    return framed(trace, full(trace), jobs_node([full(one) for one in jobs]))


def full(trace: Trace) -> Node:
    root, data = Node(title(trace), span=trace.root), trace.root.data
    names = ("id", "turn_id", "conversation", "surface", "model", "message_id", "process")
    about = {name: getattr(trace.summary, name) for name in names}  # data that the heading does not show
    root.add("trace", "faint", _facts(about | {"redacted": "yes" if trace.redacted else None}))
    if incoming := data.get("incoming"):
        root.add("incoming", block=as_lines(incoming))
    calls, before = 0, list[Any]()
    for span in trace.root.spans:
        if span.kind == "call":
            calls += 1
            root.nodes.append(_call(trace, span, calls, before))
            before = _messages(span)
        else:
            root.nodes.append(_node(trace, span))
    if (reply := data.get("reply")) is not None:
        root.add("reply", "strong", as_lines(reply))
    if trace.root.error:
        root.add("error", "bad", text_lines(trace.root.error))
    made_by = {name: trace.made_by.get(name) for name in ("versions", "prompts")}
    root.add("made by", "faint", as_lines(made_by), folded=True)
    return root


def _node(trace: Trace, span: Span) -> Node:
    """Return a span's line, its data, and its child spans."""
    if span.kind == "call":
        return _call(trace, span, 0)
    node = span_node(span)
    node.nodes = []
    if span.error:
        node.add("error", "bad", text_lines(span.error))
    if span.kind in ("search", "documents"):
        node.nodes += _search(span)
    else:
        for name, value in span.data.items():
            node.add(one_line(name, 60), "bad" if name == "traceback" else "faint", as_lines(value))
    node.nodes += [_node(trace, inner) for inner in span.spans]
    return node


def _call(trace: Trace, span: Span, number: int, before: Sequence[Any] = ()) -> Node:
    """Return the node of a model call. Messages that repeat those of the previous call, in `before`, form a
    group."""
    node = call_node(span, number)
    asked = span.data.get("request")
    if isinstance(asked, Mapping):
        request = node.add("request", "faint")
        for name, text in sections(trace, str(asked.get("system") or "")).items():
            heading = f"system message, {one_line(name, 60)}  {count(len(text), 'character')}"
            request.add(heading, block=text_lines(text), folded=name in FIXED_SECTIONS)
        items, seen = _messages(span), len(before)
        messages = [_message(f"message {place}", item) for place, item in enumerate(items, 1)]
        if seen and items[:seen] == before:
            group = request.add(f"{count(seen, 'message')} as in the call before", folded=True)
            group.nodes, messages = messages[:seen], messages[seen:]
        request.nodes += messages
        request.add("tools", block=text_lines(", ".join(map(str, asked.get("tools") or ()))), folded=True)
        if asked.get("settings"):
            request.add("settings", block=as_lines(asked["settings"]), folded=True)
    if output := _as_list(span.data.get("output")):
        items = [_message(f"item {place}", item) for place, item in enumerate(output, 1)]
        node.add("output", "faint").nodes = items
    return node


def _messages(call: Span) -> list[Any]:
    return _as_list(read_data(call, "request", "input"))


def _message(name: str, item: Any) -> Node:
    """Return the text of a plain message; any other item whole."""
    is_plain = isinstance(item, Mapping) and set(item) <= {"role", "content"}
    if is_plain and isinstance(item.get("content"), str):
        return Node(f"{name}, {one_line(item.get('role', ''), 40)}", block=text_lines(item["content"]))
    return Node(name, block=as_lines(item))


def _search(span: Span) -> Iterator[Node]:
    asked = {name: value for name, value in span.data.items() if name not in ("candidates", "found")}
    if asked:
        yield Node("asked", "faint", block=_facts(asked))
    candidates = mappings(span.data.get("candidates"))
    scores = dict(scored_ids(span))
    if candidates:
        yield Node(f"candidates  {len(candidates)}", block=_candidate_table(candidates, scores))
    elif scores:
        yield Node("found", block=[f"{score:.4f}  {one_line(id, 40)}" for id, score in scores.items()])


def _candidate_table(candidates: Sequence[Mapping[str, Any]], found: Mapping[str, float]) -> list[str]:
    """Return one row per candidate; the first column marks those that the search returned."""
    rows = [["", "score", "lanes", "id", "content", "left out"]]
    for one in candidates:
        id, score = str(one.get("id", "")), one.get("score")
        lanes = ", ".join(f"{name} {value}" for name, value in (one.get("lanes") or {}).items())
        told = f"{score:.4f}" if isinstance(score, int | float) else ""
        texts = (one_line(text or "", COLUMN) for text in (one.get("content"), one.get("left_out")))
        rows.append(["✓" if id in found else "", told, one_line(lanes, COLUMN), one_line(id[:8], 8), *texts])
    return aligned(rows)


def _facts(values: Mapping[str, Any]) -> list[str]:
    told = {name: value for name, value in values.items() if value not in (None, "", [])}
    return aligned([[one_line(name, 40), one_line(_fact(value))] for name, value in told.items()])


def _fact(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json_text(value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
