"""Exports traces as files: JSON, Markdown and OTLP."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from itertools import groupby
from typing import Any, Literal

from agent.errors import BadInput
from agent.tracing.render.text import json_text
from agent.tracing.render.trace import full_lines, overview_lines
from agent.tracing.render.tree import Line
from agent.tracing.trace import Summary, Trace, TraceWithJobs, span_json
from memory.audience import Place

Format = Literal["json", "md", "otlp", "otlp-protobuf"]


def exported(traces: Sequence[TraceWithJobs], format: Format) -> str | bytes:
    """Return all traces as one file. Raises BadInput if the format needs an extra that is not installed."""
    writers: dict[Format, Callable[[Sequence[TraceWithJobs]], str | bytes]] = {
        "json": lambda all: json_text([trace_json(one) for one in all], indent=2) + "\n",
        "md": lambda all: "\n".join(markdown(one) for one in all),
        "otlp": lambda all: json_text(_otlp("otlp_json", all)) + "\n",
        "otlp-protobuf": lambda all: _otlp("otlp_protobuf", all),
    }
    return writers[format](traces)


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return the JSON form of a row of the list."""
    tools = [{"name": name.removesuffix("!"), "ok": not name.endswith("!")} for name in summary.tools]
    told = asdict(summary) | {"place": str(Place.of_key(summary.place)), "tools": tools}
    del told["usual"]
    return told | {"trouble": summary.trouble}


def trace_json(whole: TraceWithJobs) -> dict[str, Any]:
    """Return the summary's fields with `redacted`, `made_by`, the spans below `root`, and the jobs in
    `afterwards`."""
    return _trace_json(whole.trace) | {"afterwards": [_trace_json(trace) for trace in whole.jobs]}


def _trace_json(trace: Trace) -> dict[str, Any]:
    rest = {"redacted": trace.redacted, "made_by": trace.made_by, "root": span_json(trace.root)}
    return summary_json(trace.summary) | rest


def markdown(whole: TraceWithJobs) -> str:
    """Return the overview, then all details, to paste where people and models read."""
    short, full = (_fenced(lines(whole.trace, whole.jobs)) for lines in (overview_lines, full_lines))
    summary = whole.trace.summary
    return f"# Trace {summary.short}\n\n`{summary.id}`\n\n{short}\n\n## Everything\n\n{full}\n"


def _fenced(lines: Sequence[Line]) -> str:
    """Return the lines in a fence longer than any fence in the text, so that the text cannot close it."""
    text = "\n".join(map(str, lines))
    ticks = max((len(list(run)) for tick, run in groupby(text) if tick == "`"), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}text\n{text}\n{fence}"


def _otlp(form: Literal["otlp_json", "otlp_protobuf"], traces: Sequence[TraceWithJobs]) -> Any:
    try:
        otlp = import_module("agent.tracing.otlp.spans")
    except ImportError as error:
        raise BadInput("the format otlp needs its library: pip install 'hachi[otel]'") from error
    return getattr(otlp, form)([trace for one in traces for trace in (one.trace, *one.jobs)])
