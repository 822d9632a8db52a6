"""Renders a whole trace as one tree: as much as fits on a screen, or everything."""

from collections.abc import Sequence

from agent.tracing.render.spans import BELOW_CALLS, TEXT, SpanNodes, joined, took
from agent.tracing.render.text import (
    as_lines,
    count,
    duration,
    money,
    one_line,
    quoted,
    text_lines,
    tokens,
    when,
    where,
)
from agent.tracing.render.tree import FULL, Line, Node, aligned, drawn
from agent.tracing.trace import TURN, Summary, Trace, descend, read_data, retried, tool_failed

SCREEN = 40
"""The number of lines to which `trace_lines` shortens a trace, by showing fewer search results."""


def trace_lines(trace: Trace, jobs: Sequence[Trace] = (), *, full: bool = False) -> list[Line]:
    """Return a tree with the heading above it, and the warnings and background jobs below: everything if
    `full`, otherwise on one screen if possible."""
    told = [Line("", text, "bad" if text.startswith("✗") else "warning") for text in warnings(trace)]
    root, afterwards = tree(trace), Node("afterwards", "strong", [tree(job) for job in jobs])
    lines: list[Line] = []
    for depth in [FULL] if full else range(FULL - 1, -1, -1):
        lines = [Line("", heading(trace.summary), "strong"), *drawn(root, depth), *told]
        lines += drawn(afterwards, depth) if jobs else []
        if len(lines) <= SCREEN:
            break
    return lines


def heading(summary: Summary) -> str:
    """Return ``8f3a11aa tool_error 2026-11-21 14:02:11 acme/general 1.9 s 2 calls 240→18 tokens``."""
    status = summary.status if summary.kind == TURN else f"{summary.kind} {summary.status}"
    usage = f"{tokens(summary.usage)} tokens".removeprefix(" tokens")
    about = (when(summary.started_at), where(summary.place), duration(summary.took))
    cost = money(summary.cost) if summary.cost is not None else ""
    return joined(summary.short, status, *about, count(summary.calls, "call"), usage, cost)


def _title(trace: Trace) -> str:
    """Return the speaker and the message; for a background job or a call, its name and status."""
    summary = trace.summary
    if summary.kind != TURN:
        name = one_line(summary.said or summary.kind, 40)
        return joined(f"✗ {name}" if _job_failed(trace) else name, summary.status, took(trace.root))
    who = one_line(summary.user or "somebody", 40)
    said = read_data(trace.root, "incoming", "text")
    return who if said is None else f"{who}: {quoted(said, TEXT)}"


def _job_failed(trace: Trace) -> bool:
    return trace.summary.kind != TURN and trace.summary.status in ("error", "killed")


def tree(trace: Trace) -> Node:
    """Return the tree of everything in a trace. Tools are below the model call that called them."""
    root, data = (
        Node(_title(trace), "bad" if _job_failed(trace) else "plain", span=trace.root),
        trace.root.data,
    )
    names = ("id", "turn_id", "conversation", "surface", "model", "message_id", "process")
    about = {name: getattr(trace.summary, name) for name in names}  # data that the heading does not show
    about["redacted"] = "yes" if trace.redacted else ""
    told = [[name, one_line(value)] for name, value in about.items() if value]
    root.detail("trace", "faint", aligned(told))
    if incoming := data.get("incoming"):
        root.detail("incoming", block=as_lines(incoming))
    if _job_failed(trace) and trace.root.error:
        root.add(Node(one_line(trace.root.error, 2 * TEXT), "bad", block=text_lines(trace.root.error)))
    spans, parent = SpanNodes(trace), root
    for span in trace.root.spans:
        node = spans.node(span)
        (parent if span.kind in BELOW_CALLS else root).add(node)
        parent = node if span.kind == "call" else parent
    if (reply := data.get("reply")) is not None:
        text = quoted(read_data(trace.root, "reply", "message") or "", TEXT)
        root.add(Node(f"reply {text}", "strong", block=as_lines(reply)))
    if trace.root.error and not _job_failed(trace):
        root.detail("error", "bad", text_lines(trace.root.error))
    made_by = {name: trace.made_by.get(name) for name in ("versions", "prompts", "settings")}
    root.detail("made by", "faint", as_lines(made_by), folded=True)
    return root


def warnings(trace: Trace) -> list[str]:
    """Return the warnings, one line each. An error that ended the turn begins with ✗."""
    summary, root = trace.summary, trace.root
    again, lost = retried(root), any(span.data.get("lost") for span in trace.spans("call"))
    failed = dict.fromkeys(one_line(span.name, 40) for span in trace.spans("tool") if tool_failed(span))
    cut = any(span.data.get("cut") for span in trace.spans("answer"))
    malformed = any(span.data.get("well_formed") is False for span in trace.spans("answer"))
    apart = sum(len(span.data.get("unsupported", ())) for span in trace.spans("answer"))
    turn_failed = summary.status == "error" and summary.kind == TURN
    unwritten, others = root.data.get("lost"), root.data.get("other_memory", ())
    told = {
        f"⚠ {count(again, 'call')} failed and {'was' if again == 1 else 'were'} retried": again,
        "⚠ the connection to the model was lost in mid-stream": lost,
        **{f"⚠ {text}": True for text in summary.trouble if not text.startswith("retried")},
        f"⚠ answered after a tool error: {', '.join(failed)}": failed and "reply" in root.data,
        "⚠ the answer was cut off: the model had no more tokens": cut,
        "⚠ the answer was not the JSON that was asked for, and was read leniently": malformed,
        f"⚠ {count(apart, 'new fact')} without a word of what was said or found": apart,
        "⚠ a small window: the short prompt, two tools, and an answer in plain text": root.data.get("narrow"),
        f"⚠ the client keeps memories of its own: {', '.join(others)}": others,
        f"✗ unfinished: its process was killed {_doing(trace)}": summary.status == "killed",
        f"⚠ unfinished: still running, {_doing(trace)}": summary.status == "running",
        "⚠ somebody stopped it before it ended": summary.status == "stopped",
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
