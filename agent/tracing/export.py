"""Traces as files: JSON, Markdown, one HTML page that holds everything it needs, and OTLP/JSON as any
OpenTelemetry collector takes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from html import escape
from itertools import groupby
from typing import Any, Literal

from agent.tracing.conventions import (
    AGENT,
    attributes_of,
    is_client,
    name_of,
    otel_span_id,
    otel_trace_id,
)
from agent.tracing.render.full import shown_whole, whole, whole_afterwards
from agent.tracing.render.overview import heading, shown, warnings
from agent.tracing.render.text import duration, json_text, one_line
from agent.tracing.render.tree import Line, Node
from agent.tracing.trace import Summary, Trace, span_json
from memory.audience import Place
from memory.spans import Span

Format = Literal["json", "md", "html", "otlp"]


@dataclass(frozen=True, slots=True)
class Told:
    """A trace with what was done after it."""

    trace: Trace
    after: Sequence[Trace] = ()


def exported(told: Sequence[Told], format: Format) -> str:
    """One file of all of them."""
    writers: dict[Format, Callable[[Sequence[Told]], str]] = {
        "json": lambda all: json_text([trace_json(one) for one in all], indent=2) + "\n",
        "md": lambda all: "\n".join(markdown(one) for one in all),
        "html": html,
        "otlp": lambda all: json_text(otlp(all)) + "\n",
    }
    return writers[format](told)


def summary_json(summary: Summary) -> dict[str, Any]:
    """A line of a list."""
    whole = {field.name: getattr(summary, field.name) for field in fields(Summary)}
    tools = [{"name": name.removesuffix("!"), "ok": not name.endswith("!")} for name in summary.tools]
    usage = {name: getattr(summary.usage, name) for name in ("input", "output", "cached")}
    return whole | {"place": str(Place.of_key(summary.place)), "tools": tools, "usage": usage}


def trace_json(told: Told) -> dict[str, Any]:
    """All of it: a line of a list, `redacted`, `made_by`, the tree below `root`, and `afterwards`."""
    return _trace_json(told.trace) | {"afterwards": [_trace_json(trace) for trace in told.after]}


def _trace_json(trace: Trace) -> dict[str, Any]:
    rest = {"redacted": trace.redacted, "made_by": trace.made_by, "root": span_json(trace.root)}
    return summary_json(trace.summary) | rest


def markdown(told: Told) -> str:
    """In short, then everything, to paste where people and models read."""
    summary = told.trace.summary
    parts = [
        f"# Trace {summary.short}",
        f"`{summary.id}`",
        _fenced(shown(told.trace, told.after)),
        "## Everything",
        _fenced(shown_whole(told.trace, told.after)),
    ]
    return "\n\n".join(parts) + "\n"


def _fenced(lines: Sequence[Line]) -> str:
    """In a fence that is longer than any in the text, which then cannot end it."""
    text = "\n".join(map(str, lines))
    ticks = max((len(list(run)) for tick, run in groupby(text) if tick == "`"), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}text\n{text}\n{fence}"


def html(told: Sequence[Told]) -> str:
    """One page without scripts: it loads nothing, and its own policy forbids it to."""
    title = f"Trace {told[0].trace.summary.short}" if len(told) == 1 else f"{len(told)} traces"
    body = "\n".join(_article(one) for one in told)
    return _PAGE.replace("TITLE", title).replace("BODY", body)


def _article(told: Told) -> str:
    trace, summary = told.trace, told.trace.summary
    warned = "".join(f'<p class="warning">{escape(text)}</p>' for text in warnings(trace))
    total = max((span.at + (span.took or 0.0) for span in trace.spans()), default=0.0)
    tree = _item(whole(trace), total, True)
    after = _item(whole_afterwards(told.after), 0.0, True) if told.after else ""
    return (
        f'<article id="{escape(summary.id)}"><h1>{escape(one_line(summary.said or summary.kind, 120))}</h1>'
        f'<p class="{escape(summary.status)}">{escape(heading(summary))}</p>{warned}'
        f"<ul>{tree}{after}</ul></article>"
    )


def _item(node: Node, total: float, unfolded: bool = False) -> str:
    """A list item that unfolds where there is something below it; how long it took is a bar beside it."""
    label = f'<span class="{node.tone}">{escape(node.text)}</span>{_bar(node.span, total)}'
    if not node.nodes and not node.block:
        return f'<li class="leaf">{label}</li>'
    block = f"<pre>{escape(chr(10).join(node.block))}</pre>" if node.block else ""
    inner = "".join(_item(one, total, one.span is not None and unfolded) for one in node.nodes)
    below = f"{block}<ul>{inner}</ul>" if inner else block
    return f"<li><details{' open' if unfolded else ''}><summary>{label}</summary>{below}</details></li>"


def _bar(span: Span | None, total: float) -> str:
    if span is None or not total:
        return ""
    begin, length = 100 * span.at / total, 100 * (span.took or 0.0) / total
    style = f"left:{begin:.1f}%;width:{max(length, 0.4):.1f}%"
    return f'<span class="bar" title="{escape(duration(span.took))}"><i style="{style}"></i></span>'


def otlp(told: Sequence[Told]) -> dict[str, Any]:
    """An ExportTraceServiceRequest, as ``POST /v1/traces`` of a collector takes it. Work after a turn is a
    span below the turn's own."""
    spans = [span for one in told for trace in (one.trace, *one.after) for span in otlp_spans(trace)]
    version = _utf8(str(told[0].trace.made_by.get("versions", {}).get("hachi", ""))) if told else ""
    resource = {"service.name": AGENT, "service.version": version}
    scope = {"scope": {"name": "hachi.traces", "version": version}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}


def otlp_spans(trace: Trace) -> list[dict[str, Any]]:
    summary = trace.summary
    above = otel_span_id(summary.turn_id, 0) if summary.turn_id else ""
    return [
        _otlp_span(trace, span, place, above if parent is None else otel_span_id(trace.id, parent))
        for place, (span, parent) in enumerate(_numbered(trace.root))
    ]


def _numbered(root: Span) -> list[tuple[Span, int | None]]:
    """Each span with its parent's place, in the order of `descend`."""
    found: list[tuple[Span, int | None]] = []

    def note(span: Span, parent: int | None) -> None:
        place = len(found)
        found.append((span, parent))
        for inner in span.spans:
            note(inner, place)

    note(root, None)
    return found


def _otlp_span(trace: Trace, span: Span, place: int, parent: str) -> dict[str, Any]:
    begun = trace.summary.started_at + timedelta(seconds=span.at)
    ended = begun + timedelta(seconds=span.took or 0.0)
    told: dict[str, Any] = {
        "traceId": otel_trace_id(trace.summary),
        "spanId": otel_span_id(trace.id, place),
        "name": one_line(name_of(span), 200),
        "kind": 3 if is_client(span) else 1,
        "startTimeUnixNano": str(round(begun.timestamp() * 1e6) * 1000),
        "endTimeUnixNano": str(round(ended.timestamp() * 1e6) * 1000),
        "attributes": _attributes(attributes_of(span, trace.summary if place == 0 else None)),
    }
    if parent:
        told["parentSpanId"] = parent
    if span.error or (span.kind == "tool" and span.data.get("ok") is False):
        told["status"] = {"code": 2, "message": _utf8(span.error or "the tool did not work")}
    if traceback := span.data.get("traceback"):
        stack = _attributes({"exception.stacktrace": str(traceback)})
        told["events"] = [{"name": "exception", "timeUnixNano": told["endTimeUnixNano"], "attributes": stack}]
    return told


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(_value, value))}}
    return {"stringValue": _utf8(str(value))}


def _utf8(text: str) -> str:
    """Halves of characters have no place in protobuf."""
    return text.encode("utf-8", "replace").decode()


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title>
<style>
:root { color-scheme: light dark; --text: #1d2025; --faint: #626973; --bad: #b3261e; --warn: #8a5a00;
  --line: #d5d9de; --back: #fff; --block: #f4f5f7; --bar: #3b6fb5; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6ea; --faint: #9aa2ad; --bad: #ff8a80;
  --warn: #f0b95a; --line: #3a3f46; --back: #16181c; --block: #1f2227; --bar: #7aa7e6; } }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: var(--text); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding-left: 1.1rem; border-left: 1px solid var(--line); }
article > ul { border: 0; padding: 0; }
li { margin: .15rem 0; overflow-wrap: anywhere; }
li.leaf { padding-left: 1.1rem; }
summary { cursor: pointer; }
summary:focus-visible { outline: 2px solid var(--bar); }
pre { background: var(--block); border: 1px solid var(--line); border-radius: 4px;
  margin: .3rem 0 .5rem 1.1rem;
  padding: .6rem; max-height: 32rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.faint { color: var(--faint); } .strong { font-weight: 600; }
.bad, .error, .killed, .tool_error { color: var(--bad); } .warning, .malformed { color: var(--warn); }
.bar { display: block; position: relative; height: 4px; margin: 1px 0 3px; background: var(--block); }
.bar i { position: absolute; top: 0; bottom: 0; background: var(--bar); border-radius: 2px; }
</style>
</head>
<body>
BODY
</body>
</html>
"""
