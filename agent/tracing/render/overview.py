"""Renders a trace as a tree that fits on a screen: the message, the steps, the reply and errors. `full.py`
shows everything."""

from collections.abc import Sequence

from agent.tracing.render.spans import TEXT, call_node, joined, span_node, took
from agent.tracing.render.text import count, duration, one_line, quoted, tokens, when, where
from agent.tracing.render.tree import Line, Node, drawn
from agent.tracing.trace import TURN, Summary, Trace, descend, read_data, tool_failed
from memory.process.spans import Span

SCREEN = 40
"""The number of lines that `overview_lines` aims at by showing fewer search results."""
HITS = (3, 1, 0)
"""How many results of each search to show, from the most to the fewest."""


def overview_lines(trace: Trace, jobs: Sequence[Trace] = ()) -> list[Line]:
    """Return the heading, the tree, the warnings and the background jobs; on one screen if possible."""
    lines: list[Line] = []
    for hits in HITS:
        lines = framed(trace, overview(trace, hits=hits), jobs_node([job(one) for one in jobs]))
        if len(lines) <= SCREEN:
            break
    return lines


def framed(trace: Trace, tree: Node, jobs: Node) -> list[Line]:
    """Return a tree with the heading above it, and the warnings and background jobs below."""
    lines = [Line("", heading(trace.summary), "strong"), *drawn(tree)]
    lines += [Line("", text, "bad" if text.startswith("✗") else "warning") for text in warnings(trace)]
    return [*lines, *drawn(jobs)] if jobs.nodes else lines


def heading(summary: Summary) -> str:
    """Return ``8f3a11aa tool_error 2026-11-21 14:02:11 acme/general 1.9 s 2 calls 240→18 tokens``."""
    status = summary.status if summary.kind == TURN else f"{summary.kind} {summary.status}"
    usage = f"{tokens(summary.usage)} tokens".removeprefix(" tokens")
    about = (when(summary.started_at), where(summary.place), duration(summary.took))
    return joined(summary.short, status, *about, count(summary.calls, "call"), usage)


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
        elif span.kind == "scene":
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
    summary, root = trace.summary, trace.root
    failed = summary.status in ("error", "killed")
    text = joined(f"{'✗ ' if failed else ''}{title(trace)}", summary.status, took(root))
    node = Node(text, "bad" if failed else "plain", span=root)
    if root.error:
        node.add(one_line(root.error, 2 * TEXT), "bad")
    calls = 0
    for span in trace.spans("call", "decision", "exchange"):
        calls += span.kind == "call"
        node.nodes.append(call_node(span, calls) if span.kind == "call" else span_node(span))
    return node


def jobs_node(jobs: Sequence[Node]) -> Node:
    return Node("afterwards", "strong", list(jobs))


def warnings(trace: Trace) -> list[str]:
    """Return the warnings, one line each. An error that ended the turn begins with ✗."""
    summary, root = trace.summary, trace.root
    retried = sum(bool(span.error) for span in [span for span in root.spans if span.kind == "call"][:-1])
    failed = dict.fromkeys(one_line(span.name, 40) for span in trace.spans("tool") if tool_failed(span))
    malformed = any(span.data.get("well_formed") is False for span in trace.spans("answer"))
    turn_failed = summary.status == "error" and summary.kind == TURN
    lost = root.data.get("lost")
    told = {
        f"⚠ {count(retried, 'call')} failed and {'was' if retried == 1 else 'were'} retried": retried,
        f"⚠ answered after a tool error: {', '.join(failed)}": failed and "reply" in root.data,
        "⚠ the answer was not the JSON that was asked for, and was read leniently": malformed,
        f"✗ unfinished: its process was killed {_doing(trace)}": summary.status == "killed",
        f"⚠ unfinished: still running, {_doing(trace)}": summary.status == "running",
        f"✗ the turn failed: {one_line(root.error, 3 * TEXT)}": turn_failed,
        f"⚠ its content could not be written: {one_line(lost, TEXT)}": lost,
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
