"""A trace as a tree that fits on a screen: what was said, what the model was asked, which tools ran and how
they ended, what was looked up and left out, what was decided, and what went wrong.

`shown` is all of it in lines. `agent/tracing/render/full.py` tells everything.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.tracing.render.text import count, duration, one_line, quoted, tokens, when, where
from agent.tracing.render.tree import Line, Node, drawn
from agent.tracing.trace import TURN, Summary, Trace, Usage, descend
from memory.spans import Span

SCREEN = 40
"""Lines that `shown` aims at: what is found in memory gives way first."""
HITS = (3, 1, 0)
"""What is found that each search shows, from what we would like to what we put up with."""
TEXT = 90
"""Columns of a text within a line."""

Values = Mapping[str, Any]


def shown(trace: Trace, after: Sequence[Trace] = ()) -> list[Line]:
    """All in lines; a screen's height as far as that can be."""
    lines: list[Line] = []
    for hits in HITS:
        lines = [Line("", heading(trace.summary), "strong"), *drawn(tree(trace, hits=hits))]
        lines += [Line("", text, "bad" if text.startswith("✗") else "warning") for text in warnings(trace)]
        if after:
            lines += drawn(afterwards(after))
        if len(lines) <= SCREEN:
            break
    return lines


def heading(summary: Summary) -> str:
    """``8f3a11aa  tool_error  2026-11-21 14:02:11  acme/general  1.9 s  2 calls  240→18 tokens``"""
    usage = tokens(summary.usage)
    parts = [
        summary.short,
        summary.status if summary.kind == TURN else f"{summary.kind} {summary.status}",
        when(summary.started_at),
        where(summary.place),
        duration(summary.took),
        count(summary.calls, "call"),
        usage and f"{usage} tokens",
    ]
    return "  ".join(part for part in parts if part)


def tree(trace: Trace, *, hits: int = HITS[0]) -> Node:
    if trace.summary.kind != TURN:
        return work(trace)
    who = one_line(trace.summary.user or "somebody", 40)
    said = _map(trace.root.data.get("incoming")).get("text")
    root = Node(f"{who}: {quoted(said, TEXT)}" if said is not None else who, span=trace.root)
    calls, under = 0, root
    for span in trace.root.spans:
        calls += span.kind == "call"
        if span.kind == "call":
            under = call_node(span, calls)
            root.nodes.append(under)
        elif span.kind in ("tool", "decision", "search", "documents"):
            under.nodes.append(_node(span, hits))
        elif span.kind == "scene":
            root.nodes.append(scene_node(span))
            root.nodes[-1].nodes += [_node(inner, hits) for inner in span.spans]
    reply = _map(trace.root.data.get("reply")).get("message")
    if reply is not None:
        root.add(f"reply {quoted(reply, TEXT)}", "strong")
    return root


def _node(span: Span, hits: int) -> Node:
    if span.kind == "tool":
        return tool_node(span, hits)
    if span.kind in ("search", "documents"):
        return search_node(span, hits)
    if span.kind == "decision":
        return decision_node(span)
    node = Node(_timed(one_line(f"{span.kind} {span.name}".strip(), 60), span), span=span)
    node.nodes += [_node(inner, hits) for inner in span.spans]
    return node


def scene_node(span: Span) -> Node:
    """What was looked up before the model was asked."""
    scene = _map(span.data.get("scene"))
    known = _map(scene.get("known"))
    parts = [
        count(len(found), one)
        for name, one in (("long_term_facts", "fact"), ("open_tasks", "open task"))
        if (found := known.get(name))
    ]
    if history := scene.get("history"):
        parts.append(count(len(history), "message"))
    parts += [f"{name}" for name in ("summary", "knowledge") if scene.get(name)]
    told = ("scene: " + ", ".join(parts)) if parts else "scene"
    return Node(_timed(told, span), "bad" if span.error else "faint", span=span)


def call_node(span: Span, number: int) -> Node:
    usage = usage_of(span)
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    asked = f"{tokens(usage)} tokens{cached}" if tokens(usage) else ""
    first = span.data.get("first")
    streamed = f"first word after {duration(first)}" if first is not None else ""
    parts = [f"call {number}", one_line(span.name, 40), asked, took(span), streamed]
    text = "  ".join(part for part in parts if part)
    if span.error:
        return Node(f"✗ {text}  {one_line(span.error, TEXT)}", "bad", span=span)
    return Node(text, "warning" if span.took is None else "plain", span=span)


def usage_of(call: Span) -> Usage:
    usage = _map(call.data.get("usage"))
    return Usage(*(int(usage.get(name) or 0) for name in ("input", "output", "cached")))


def went_wrong(tool: Span) -> bool:
    return tool.error is not None or tool.data.get("ok") is False


def tool_node(span: Span, hits: int) -> Node:
    """The call as the model wrote it, what it did, and what the model was told."""
    called = f"{one_line(span.name, 40)}({arguments(span.data.get('arguments'))})"
    wrong = went_wrong(span)
    node = Node(_timed(f"✗ {called}" if wrong else called, span), "bad" if wrong else "plain", span=span)
    node.nodes += [_node(inner, hits) for inner in span.spans]
    if wrong:
        node.add(f"error: {one_line(_error_of(span), 2 * TEXT)}", "bad")
        if raised := _raised(span.data.get("traceback")):
            node.add(raised, "faint")
    elif (result := span.data.get("result")) is not None:
        node.add(f"→ {gist(result)}", "faint")
    return node


def arguments(written: Any) -> str:
    """``query="cats", limit=3``; as the model wrote them where they are no object."""
    value = _read(written)
    if not isinstance(value, Mapping):
        return one_line(written or "", TEXT)
    given = (f"{name}={json.dumps(part, ensure_ascii=False)}" for name, part in value.items())
    return one_line(", ".join(part[:TEXT] for part in given), TEXT)


def gist(result: Any) -> str:
    """A result in a few words: ``memories: 3, note: "nothing more"``."""
    value = _read(result)
    if not isinstance(value, Mapping):
        return one_line(result, TEXT)
    return one_line(", ".join(f"{name}: {_short(part)}" for name, part in value.items() if part), TEXT)


def _short(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return quoted(value, 40) if isinstance(value, str) else one_line(json.dumps(value), 40)


def _read(written: Any) -> Any:
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


def _error_of(tool: Span) -> str:
    told = _read(tool.data.get("result"))
    said = told.get("error") if isinstance(told, Mapping) else tool.data.get("result")
    return str(tool.error or said or "it did not work")


def _raised(written: Any) -> str:
    """``StoreUnavailable, raised in memory/index/embedded.py:120``"""
    if not isinstance(written, str) or not written.strip():
        return ""
    last = written.strip().splitlines()[-1]
    name = last.partition(":")[0].rpartition(".")[2]
    files = re.findall(r'File "([^"\n]*)", line (\d+)', written[-20_000:])
    if not files:
        return one_line(name, TEXT)
    path, line = files[-1]
    short = "/".join(path.replace("\\", "/").split("/")[-3:])
    return one_line(f"{name}, raised in {short}:{line}", TEXT)


def search_node(span: Span, hits: int) -> Node:
    """How much was found, and what was left out, by reason."""
    found, candidates = span.data.get("found") or (), list(_maps(span.data.get("candidates")))
    what = "search" if span.kind == "search" else "documents"
    query = span.data.get("query")
    parts = [f"{what} {quoted(query, 50)}" if query else f"{what} {one_line(span.name, 40)}".strip()]
    if audience := span.data.get("audience"):
        parts.append(one_line("reads " + ", ".join(map(str, audience)), 50))
    reasons = Counter(str(one["left_out"]) for one in candidates if one.get("left_out"))
    told = f"{len(found)} found" if "found" in span.data else ""
    if reasons:
        told += (
            f", {reasons.total()} left out ({', '.join(f'{n} × {why}' for why, n in reasons.most_common())})"
        )
    parts += [one_line(told, 2 * TEXT), took(span)]
    text = "  ".join(part for part in parts if part)
    node = Node(text, span=span)
    if span.error:
        node.text, node.tone = f"✗ {text}  {one_line(span.error, TEXT)}", "bad"
    known = {one.get("id"): one for one in candidates}
    for id, score in list(pairs(found))[:hits]:
        content = known.get(id, {}).get("content")
        node.add(f"{score:.2f}  {quoted(content, TEXT) if content else id[:8]}", "faint")
    if hits and len(found) > hits:
        node.add(f"… {len(found) - hits} more", "faint")
    return node


def pairs(found: Any) -> Iterator[tuple[str, float]]:
    for pair in found or ():
        if isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[1], int | float):
            yield str(pair[0]), float(pair[1])


def decision_node(span: Span) -> Node:
    made = [decision_text(one) for one in _maps(span.data.get("decisions"))]
    if len(made) == 1:
        node = Node(_timed(made[0], span), span=span)
    else:
        node = Node(_timed(f"{count(len(made), 'decision')}" if made else "decision", span), span=span)
        node.nodes = [Node(text) for text in made]
    if span.error:
        node.text, node.tone = f"✗ {node.text}  {one_line(span.error, TEXT)}", "bad"
    return node


def decision_text(one: Values) -> str:
    """``replace 1f2e3d4c "Ana lives in Lyon" (says that it changed)``"""
    parts = [str(one.get("action", "?")), str(one.get("id") or "")[:8], quoted(one.get("content", ""), TEXT)]
    told = " ".join(one_line(part) for part in parts if part)
    return f"{told} ({one_line(one['reason'], TEXT)})" if one.get("reason") else told


def afterwards(after: Sequence[Trace]) -> Node:
    node = Node("afterwards", "strong")
    node.nodes = [work(trace) for trace in after]
    return node


def work(trace: Trace) -> Node:
    """What was done after a turn."""
    summary, root = trace.summary, trace.root
    wrong = summary.status in ("error", "killed")
    told = f"{'✗ ' if wrong else ''}{one_line(summary.kind, 40)}  {summary.status}  {took(root)}".rstrip()
    node = Node(told, "bad" if wrong else "plain", span=root)
    if root.error:
        node.add(one_line(root.error, 2 * TEXT), "bad")
    calls = 0
    for span in descend(root):
        if span.kind == "call":
            calls += 1
            node.nodes.append(call_node(span, calls))
        elif span.kind == "decision":
            node.nodes.append(decision_node(span))
        elif span.kind == "exchange":
            node.add(_findings(span), "warning" if span.data.get("well_formed") is False else "faint")
    return node


def _findings(span: Span) -> str:
    """What looking back at an exchange brought."""
    told = f"looked back at {count(len(span.data.get('messages') or ()), 'message')}"
    if span.data.get("well_formed") is False:
        return f"{told}; what the model found could not be read"
    updates = _map(_map(span.data.get("findings")).get("updates"))
    new = [
        count(len(found), one)
        for name, one in (
            ("new_facts", "new fact"),
            ("new_preferences", "new preference"),
            (
                "task_updates",
                "change of a task",
            ),
        )
        if (found := updates.get(name))
    ]
    return f"{told}; {', '.join(new) if new else 'nothing new'}"


def warnings(trace: Trace) -> list[str]:
    """What a reader must not miss, a line each; what ended the turn begins with ✗."""
    found: list[str] = []
    summary, root = trace.summary, trace.root
    again = sum(
        one.kind == "call"
        and one.error is not None
        and any(later.kind == "call" for later in root.spans[at:])
        for at, one in enumerate(root.spans, 1)
    )
    if again:
        found.append(f"⚠ {count(again, 'call')} failed and {'was' if again == 1 else 'were'} made again")
    failed = dict.fromkeys(one_line(span.name, 40) for span in trace.spans("tool") if went_wrong(span))
    if failed and "reply" in root.data:
        found.append(f"⚠ answered after a tool error: {', '.join(failed)}")
    if any(span.data.get("well_formed") is False for span in trace.spans("answer")):
        found.append("⚠ the answer was not the JSON that was asked for, and was read leniently")
    if summary.status == "killed":
        found.append(f"✗ unfinished: its process was killed {_doing(trace)}")
    elif summary.status == "running":
        found.append(f"⚠ unfinished: still running, {_doing(trace)}")
    elif root.error and summary.kind == TURN:
        found.append(f"✗ the turn failed: {one_line(root.error, 3 * TEXT)}")
    if lost := root.data.get("lost"):
        found.append(f"⚠ what was said in it could not be written: {one_line(lost, TEXT)}")
    if trace.redacted:
        found.append("⚠ something was redacted before this was written")
    return found


def _doing(trace: Trace) -> str:
    """What was going on when it was last heard of."""
    open_spans = [span for span in descend(trace.root) if span.took is None and span is not trace.root]
    if not open_spans:
        return "between two steps"
    last = open_spans[-1]
    calls = list(trace.spans("call"))
    if last.kind == "call":
        return f"while waiting for the model (call {calls.index(last) + 1})"
    if last.kind == "scene":
        return "while what the model gets to see was looked up"
    return f"in {one_line(f'{last.kind} {last.name}'.strip(), 60)}"


def took(span: Span) -> str:
    return duration(span.took) or "not ended"


def _timed(text: str, span: Span) -> str:
    return f"{text}  {took(span)}"


def _map(value: Any) -> Values:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> Iterator[Values]:
    for item in value if isinstance(value, list | tuple) else ():
        if isinstance(item, Mapping):
            yield item
