"""Renders spans as nodes: what happened, how it ended and how long it took, with the contents below."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from agent.tracing.differences import sections
from agent.tracing.render.text import (
    as_lines,
    count,
    duration,
    json_text,
    one_line,
    parsed_json,
    quoted,
    text_lines,
    tokens,
)
from agent.tracing.render.tree import DETAIL, SHORT, Node, aligned
from agent.tracing.trace import Trace, mappings, read_data, scored_ids, shown_ids, tool_failed, usage_of
from memory.process.spans import Span

TEXT = 90
"""The most columns of a text within a line."""
HITS = 3
"""How many search results are shown at the depth below `FULL`; each smaller depth shows fewer."""
BELOW_CALLS = frozenset({"tool", "decision", "search", "documents"})
"""The kinds of spans that a model call causes."""
IN_SHORT = BELOW_CALLS | {"call", "scene", "wait", "exchange"}
"""The kinds of spans that are shown at any depth."""
FIXED_SECTIONS = frozenset({"persona", "rules"})
"""Sections of the system message that are the same in every turn."""
COLUMN = 60
"""Columns of a candidate's content in the table of candidates."""


class SpanNodes:
    """Creates the nodes of a trace's spans, in order."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._calls = trace, 0
        self._before: list[Any] = []
        """The messages of the last model call."""

    def node(self, span: Span) -> Node:
        """Return the node of a span and of the spans in it."""
        create = self._call_node if span.kind == "call" else _NODES.get(span.kind, _other_node)
        node = create(span)
        node.span = span
        if span.kind not in IN_SHORT:
            node.depths = DETAIL
        if span.error:
            if span.kind != "tool":  # its text has the error already
                node.text, node.tone = f"✗ {node.text}  {one_line(span.error, TEXT)}", "bad"
            node.detail("error", "bad", text_lines(span.error))
        (self._add_request if span.kind == "call" else _add_data)(node, span)
        node.nodes = [*map(self.node, span.spans), *node.nodes]
        return node

    def _call_node(self, span: Span) -> Node:
        self._calls += 1
        usage, first = usage_of([span]), span.data.get("first")
        cached = f" ({usage.cached} cached)" if usage.cached else ""
        counted = f"{tokens(usage)} tokens{cached}" if tokens(usage) else ""
        streamed = f"first letter after {duration(first)}" if first is not None else ""
        streamed += "  lost in mid-stream" if span.data.get("lost") else ""
        streamed += "  cut off" if span.data.get("finish") in ("length", "content_filter") else ""
        text = joined(f"call {self._calls}", one_line(span.name, 40), counted, took(span), streamed)
        return Node(text, "warning" if span.took is None else "plain")

    def _add_request(self, node: Node, span: Span) -> None:
        """Add the request and the output. Messages repeated from the previous call form a group."""
        request, items = span.data.get("request"), _as_list(read_data(span, "request", "input"))
        if isinstance(request, dict):
            asked, before = node.detail("request", "faint"), self._before
            for name, text in sections(self._trace, str(request.get("system") or "")).items():
                told = f"system message, {one_line(name, 60)}  {count(len(text), 'character')}"
                asked.detail(told, block=text_lines(text), folded=name in FIXED_SECTIONS)
            messages, repeated = list(_message_nodes("message", items)), len(before)
            if repeated and items[:repeated] == before:
                group = asked.detail(f"{count(repeated, 'message')} as in the call before", folded=True)
                group.nodes, messages = messages[:repeated], messages[repeated:]
            asked.nodes += messages
            tools = ", ".join(map(str, request.get("tools") or ()))
            asked.detail("tools", block=text_lines(tools), folded=True)
            for part in ("settings", "response_format"):
                if request.get(part):
                    asked.detail(part, block=as_lines(request[part]), folded=True)
            self._before = items
        if output := _as_list(span.data.get("output")):
            node.detail("output", "faint").nodes = list(_message_nodes("item", output))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _add_data(node: Node, span: Span) -> None:
    """Add everything that the span recorded."""
    candidates = mappings(span.data.get("candidates"))
    for name, value in span.data.items():
        if name == "candidates":
            node.detail(f"candidates  {len(candidates)}", block=_table(candidates, shown_ids(span)))
        elif not (candidates and name in ("found", "given")):  # they are in the table
            node.detail(one_line(name, 60), "bad" if name == "traceback" else "faint", as_lines(value))


def took(span: Span) -> str:
    return duration(span.took) or "not ended"


def joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _other_node(span: Span) -> Node:
    return Node(joined(one_line(f"{span.kind} {span.name}".strip(), 60), took(span)))


def _context_node(span: Span) -> Node:
    """Return the node of the context that was built before the first model call."""
    prompt = read_data(span, "context", "prompt") or {}
    known = prompt.get("known") or {}
    listed = {"fact": known.get("long_term_facts"), "open task": known.get("open_tasks")}
    listed["message"] = prompt.get("history")
    parts = [count(len(items), name) for name, items in listed.items() if items]
    parts += [name for name in ("summary", "knowledge") if prompt.get(name)]
    return Node(joined(f"context: {', '.join(parts)}".removesuffix(": "), took(span)), "faint")


def _tool_node(span: Span) -> Node:
    """Return the node of a tool call: the arguments as written, and the result."""
    bad, result = tool_failed(span), span.data.get("result")
    called = f"{one_line(span.name, 40)}({_fields(span.data.get('arguments'), '=', json_text)})"
    node = Node(joined(f"✗ {called}" if bad else called, took(span)), "bad" if bad else "plain")
    if bad:
        parsed = parsed_json(result)
        told = parsed.get("error") if isinstance(parsed, Mapping) else result
        error = one_line(span.error or told or "it did not work", 2 * TEXT)
        node.add(Node(f"error: {error}", "bad", depths=SHORT))
        if traceback := span.data.get("traceback"):
            node.add(Node(_raised(traceback), "faint", depths=SHORT))
    elif result is not None:
        node.add(Node(f"→ {_fields(result, ': ', _brief)}", "faint", depths=SHORT))
    return node


def _fields(written: Any, joint: str, show: Callable[[Any], str]) -> str:
    """Return ``query="cats", limit=3``, without empty fields; the text itself if it is not a JSON object."""
    value = parsed_json(written)
    if not isinstance(value, Mapping):
        return one_line(written or "", TEXT)
    told = {name: show(part)[:TEXT] for name, part in value.items() if part not in (None, "", [])}
    return one_line(", ".join(f"{name}{joint}{text}" for name, text in told.items()), TEXT)


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return quoted(value, 40) if isinstance(value, str) else one_line(json_text(value), 40)


def _raised(traceback: str) -> str:
    """Return ``StoreUnavailable, raised in memory/index/engine.py:120``."""
    name = traceback.strip().rpartition("\n")[2].partition(":")[0].rpartition(".")[2]
    for path, line in re.findall(r'File "([^"\n]*)", line (\d+)', traceback[-20_000:])[-1:]:
        short = "/".join(path.replace("\\", "/").split("/")[-3:])
        name += f", raised in {short}:{line}"
    return one_line(name, TEXT)


def _search_node(span: Span) -> Node:
    """Return the node of a search: how many results, how many were left out and why, and the best ones."""
    found, candidates, given = scored_ids(span), mappings(span.data.get("candidates")), shown_ids(span)
    reasons = Counter(str(one["left_out"]) for one in candidates if one.get("left_out"))
    result = f"{len(found)} found" if "found" in span.data else ""
    result += f", {len(given)} given" if len(given) < len(found) else ""
    if reasons:
        told = ", ".join(f"{number} × {reason}" for reason, number in reasons.most_common())
        result += f", {reasons.total()} left out ({told})"
    query, audience = span.data.get("query"), span.data.get("audience") or ()
    asked = f"{span.kind} {quoted(query, 50) if query else one_line(span.name, 40)}".strip()
    reads = one_line(f"reads {', '.join(map(str, audience))}", 50) if audience else ""
    node = Node(joined(asked, reads, one_line(result, 2 * TEXT), took(span)))
    contents = {one.get("id"): one.get("content") for one in candidates}
    for rank, (id, score) in enumerate(found[:HITS]):
        shown = quoted(contents[id], TEXT) if contents.get(id) else one_line(id, 8)
        node.add(Node(f"{score:.2f}  {shown}", "faint", depths=SHORT[1 + bool(rank) :]))
    return node


def _table(candidates: Sequence[Mapping[str, Any]], given: Set[str]) -> list[str]:
    """Return one row per candidate; the first column marks those that the model received."""
    rows = [["", "score", "lanes", "id", "content", "left out"]]
    for one in candidates:
        id, score = str(one.get("id", "")), one.get("score")
        lanes = ", ".join(f"{name} {value}" for name, value in (one.get("lanes") or {}).items())
        told = f"{score:.4f}" if isinstance(score, int | float) else ""
        texts = (one_line(text or "", COLUMN) for text in (one.get("content"), one.get("left_out")))
        rows.append(["✓" if id in given else "", told, one_line(lanes, COLUMN), one_line(id[:8], 8), *texts])
    return aligned(rows)


def _decision_node(span: Span) -> Node:
    made = [_decision(one) for one in mappings(span.data.get("decisions"))]
    if len(made) == 1:
        return Node(joined(made[0], took(span)))
    heading = count(len(made), "decision") if made else "decision"
    return Node(joined(heading, took(span)), nodes=[Node(text, depths=SHORT) for text in made])


def _decision(one: Mapping[str, Any]) -> str:
    """Return ``replace 1f2e3d4c "Ana lives in Lyon" (says that it changed)``."""
    parts = [str(one.get("action", "?")), str(one.get("id") or "")[:8], quoted(one.get("content", ""), TEXT)]
    text = " ".join(one_line(part) for part in parts if part)
    return f"{text} ({one_line(one['reason'], TEXT)})" if one.get("reason") else text


def _consolidation_node(span: Span) -> Node:
    """Return the node of a consolidation: what its answer contains about some messages."""
    text = f"consolidated {count(len(read_data(span, 'reading', 'lines') or ()), 'message')}"
    updates = read_data(span, "findings", "updates") or {}
    names = {"new_facts": "new fact", "new_preferences": "new preference", "task_updates": "task update"}
    new = [count(len(updates[name]), one) for name, one in names.items() if updates.get(name)]
    faults = [one_line(fault, TEXT) for fault in read_data(span, "findings", "faults") or ()]
    nodes = [Node(f"not read: {fault}", depths=SHORT) for fault in faults]
    return Node(f"{text}; {', '.join(new) or 'nothing new'}", "warning" if faults else "faint", nodes)


def _message_nodes(name: str, items: Sequence[Any]) -> Iterator[Node]:
    """Yield a node for each message: the text of a plain one, or the whole item."""
    for place, item in enumerate(items, 1):
        is_plain = isinstance(item, Mapping) and set(item) <= {"role", "content"}
        if is_plain and isinstance(item.get("content"), str):
            role = one_line(item.get("role", ""), 40)
            yield Node(f"{name} {place}, {role}", block=text_lines(item["content"]))
        else:
            yield Node(f"{name} {place}", block=as_lines(item))


_NODES: Mapping[str, Callable[[Span], Node]] = {
    "scene": _context_node,
    "tool": _tool_node,
    "search": _search_node,
    "documents": _search_node,
    "decision": _decision_node,
    "exchange": _consolidation_node,
}
