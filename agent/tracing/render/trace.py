"""Renders a whole trace as one tree: in short, so that it fits on a screen, or with everything it holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import count as count_from
from typing import Any

from agent.tracing.differences import sections
from agent.tracing.render.spans import TEXT, call_node, joined, span_node, took
from agent.tracing.render.text import (
    as_lines,
    count,
    duration,
    json_text,
    money,
    one_line,
    quoted,
    text_lines,
    tokens,
    when,
    where,
)
from agent.tracing.render.tree import Line, Node, aligned, drawn
from agent.tracing.trace import (
    TURN,
    Summary,
    Trace,
    descend,
    given_of,
    mappings,
    read_data,
    retried,
    scored_ids,
    tool_failed,
)
from memory.process.spans import Span

SCREEN = 40
"""The number of lines that `overview_lines` aims at by showing fewer search results."""
HITS = (3, 1, 0)
"""How many results of each search to show, from the most to the fewest."""
COLUMN = 60
"""Columns of a candidate's content in the table of candidates."""
FIXED_SECTIONS = frozenset({"persona", "rules"})
"""Sections of the system message that are the same in every turn."""


def overview_lines(trace: Trace, jobs: Sequence[Trace] = ()) -> list[Line]:
    """Return the heading, the tree, the warnings and the background jobs; on one screen if possible."""
    lines: list[Line] = []
    for hits in HITS:
        lines = _framed(trace, overview(trace, hits=hits), jobs_node(map(job, jobs)))
        if len(lines) <= SCREEN:
            break
    return lines


def full_lines(trace: Trace, jobs: Sequence[Trace] = ()) -> list[Line]:
    return _framed(trace, full(trace), jobs_node(map(full, jobs)))


def _framed(trace: Trace, tree: Node, jobs: Node) -> list[Line]:
    """Return a tree with the heading above it, and the warnings and background jobs below."""
    lines = [Line("", heading(trace.summary), "strong"), *drawn(tree)]
    lines += [Line("", text, "bad" if text.startswith("✗") else "warning") for text in warnings(trace)]
    return [*lines, *drawn(jobs)] if jobs.nodes else lines


def jobs_node(jobs: Iterable[Node]) -> Node:
    return Node("afterwards", "strong", list(jobs))


def heading(summary: Summary) -> str:
    """Return ``8f3a11aa tool_error 2026-11-21 14:02:11 acme/general 1.9 s 2 calls 240→18 tokens``."""
    status = summary.status if summary.kind == TURN else f"{summary.kind} {summary.status}"
    usage = f"{tokens(summary.usage)} tokens".removeprefix(" tokens")
    about = (when(summary.started_at), where(summary.place), duration(summary.took))
    cost = money(summary.cost) if summary.cost is not None else ""
    return joined(summary.short, status, *about, count(summary.calls, "call"), usage, cost)


def title(trace: Trace) -> str:
    """Return the speaker and the message; for a background job its kind, for a call over MCP its tool."""
    if trace.summary.kind != TURN:
        return one_line(trace.summary.said or trace.summary.kind, 40)
    who = one_line(trace.summary.user or "somebody", 40)
    said = read_data(trace.root, "incoming", "text")
    return who if said is None else f"{who}: {quoted(said, TEXT)}"


def overview(trace: Trace, *, hits: int = HITS[0]) -> Node:
    """Return a turn's tree. Tools are below the model call that called them."""
    if trace.summary.kind != TURN:
        return job(trace)
    root = Node(title(trace), span=trace.root)
    calls, parent = 0, root
    for span in trace.root.spans:
        if span.kind == "call":
            calls += 1
            parent = call_node(span, calls)
            root.nodes.append(parent)
        elif span.kind in ("scene", "wait"):
            root.nodes.append(_nested(span, hits))
        elif span.kind in ("tool", "decision", "search", "documents"):
            parent.nodes.append(_nested(span, hits))
    reply = read_data(trace.root, "reply", "message")
    if reply is not None:
        root.add(f"reply {quoted(reply, TEXT)}", "strong")
    return root


def _nested(span: Span, hits: int) -> Node:
    node = span_node(span, hits)
    node.nodes = [*(_nested(inner, hits) for inner in span.spans), *node.nodes]
    return node


def job(trace: Trace) -> Node:
    """Return a background job's tree: its model calls, decisions and extracted data."""
    root, failed = trace.root, trace.summary.status in ("error", "killed")
    text = joined(f"{'✗ ' if failed else ''}{title(trace)}", trace.summary.status, took(root))
    node = Node(text, "bad" if failed else "plain", span=root)
    if root.error:
        node.add(one_line(root.error, 2 * TEXT), "bad")
    numbers = count_from(1)
    for span in trace.spans("call", "decision", "exchange", "wait"):
        node.nodes.append(call_node(span, next(numbers)) if span.kind == "call" else span_node(span))
    return node


def full(trace: Trace) -> Node:
    """Return the tree of everything: requests, outputs, candidates, tracebacks."""
    root, data = Node(title(trace), span=trace.root), trace.root.data
    names = ("id", "turn_id", "conversation", "surface", "model", "message_id", "process")
    about = {name: getattr(trace.summary, name) for name in names}  # data that the heading does not show
    root.add("trace", "faint", _facts(about | {"redacted": "yes" if trace.redacted else None}))
    if incoming := data.get("incoming"):
        root.add("incoming", block=as_lines(incoming))
    numbers, before = count_from(1), list[Any]()
    for span in trace.root.spans:
        root.nodes.append(_node(trace, span, numbers, before))
        before = _messages(span) if span.kind == "call" else before
    if (reply := data.get("reply")) is not None:
        root.add("reply", "strong", as_lines(reply))
    if trace.root.error:
        root.add("error", "bad", text_lines(trace.root.error))
    made_by = {name: trace.made_by.get(name) for name in ("versions", "prompts", "settings")}
    root.add("made by", "faint", as_lines(made_by), folded=True)
    return root


def _node(trace: Trace, span: Span, numbers: Iterator[int], before: Sequence[Any] = ()) -> Node:
    """Return a span's line, its data, and its child spans."""
    if span.kind == "call":
        return _call(trace, span, next(numbers), before)
    node = span_node(span)
    node.nodes = []
    if span.error:
        node.add("error", "bad", text_lines(span.error))
    if span.kind in ("search", "documents"):
        node.nodes += _search(span)
    else:
        for name, value in span.data.items():
            node.add(one_line(name, 60), "bad" if name == "traceback" else "faint", as_lines(value))
    node.nodes += [_node(trace, inner, numbers) for inner in span.spans]
    return node


def _call(trace: Trace, span: Span, number: int, before: Sequence[Any]) -> Node:
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
        for part in ("settings", "response_format"):
            if asked.get(part):
                request.add(part, block=as_lines(asked[part]), folded=True)
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
    hidden = ("candidates", "found", "given")
    asked = {name: value for name, value in span.data.items() if name not in hidden}
    if asked:
        yield Node("asked", "faint", block=_facts(asked))
    candidates = mappings(span.data.get("candidates"))
    scores = dict(scored_ids(span))
    if candidates:
        yield Node(f"candidates  {len(candidates)}", block=_candidate_table(candidates, given_of(span)))
    elif scores:
        yield Node("found", block=[f"{score:.4f}  {one_line(id, 40)}" for id, score in scores.items()])


def _candidate_table(candidates: Sequence[Mapping[str, Any]], given: Set[str]) -> list[str]:
    """Return one row per candidate; the first column marks those that the model was given."""
    rows = [["", "score", "lanes", "id", "content", "left out"]]
    for one in candidates:
        id, score = str(one.get("id", "")), one.get("score")
        lanes = ", ".join(f"{name} {value}" for name, value in (one.get("lanes") or {}).items())
        told = f"{score:.4f}" if isinstance(score, int | float) else ""
        texts = (one_line(text or "", COLUMN) for text in (one.get("content"), one.get("left_out")))
        rows.append(["✓" if id in given else "", told, one_line(lanes, COLUMN), one_line(id[:8], 8), *texts])
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


def warnings(trace: Trace) -> list[str]:
    """Return the warnings, one line each. An error that ended the turn begins with ✗."""
    summary, root = trace.summary, trace.root
    again, lost = retried(root), any(span.data.get("lost") for span in trace.spans("call"))
    failed = dict.fromkeys(one_line(span.name, 40) for span in trace.spans("tool") if tool_failed(span))
    cut = any(span.data.get("cut") for span in trace.spans("answer"))
    malformed = any(span.data.get("well_formed") is False for span in trace.spans("answer"))
    apart = sum(len(span.data.get("unsupported", ())) for span in trace.spans("answer"))
    turn_failed = summary.status == "error" and summary.kind == TURN
    unwritten = root.data.get("lost")
    told = {
        f"⚠ {count(again, 'call')} failed and {'was' if again == 1 else 'were'} retried": again,
        "⚠ the connection to the model was lost in mid-stream": lost,
        **{f"⚠ {text}": True for text in summary.trouble if not text.startswith("retried")},
        f"⚠ answered after a tool error: {', '.join(failed)}": failed and "reply" in root.data,
        "⚠ the answer was cut off: the model had no more tokens": cut,
        "⚠ the answer was not the JSON that was asked for, and was read leniently": malformed,
        f"⚠ {count(apart, 'new fact')} without a word of what was said or found": apart,
        "⚠ a small window: the short prompt, two tools, and an answer in plain text": root.data.get("narrow"),
        f"✗ unfinished: its process was killed {_doing(trace)}": summary.status == "killed",
        f"⚠ unfinished: still running, {_doing(trace)}": summary.status == "running",
        f"✗ the turn failed: {one_line(root.error, 3 * TEXT)}": turn_failed,
        f"⚠ its content could not be written: {one_line(unwritten, TEXT)}": unwritten,
        "⚠ something was redacted before this was written": trace.redacted,
    }
    return [text for text, holds in told.items() if holds]


def _doing(trace: Trace) -> str:
    """Return the operation that was running when the trace was last written."""
    unfinished = [span for span in descend(trace.root) if span.took is None and span is not trace.root]
    if not unfinished:
        return "between two steps"
    last = unfinished[-1]
    if last.kind == "call":
        return f"while waiting for the model (call {list(trace.spans('call')).index(last) + 1})"
    if last.kind == "scene":
        return "while the context for the model was looked up"
    return f"in {one_line(f'{last.kind} {last.name}'.strip(), 60)}"
