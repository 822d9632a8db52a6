"""Exports traces as files: JSON, Markdown, a single HTML page, and OTLP/JSON."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal

from agent.errors import BadInput
from agent.tracing.render.text import duration, json_text, one_line
from agent.tracing.render.trace import full, full_lines, heading, jobs_node, overview_lines, warnings
from agent.tracing.render.tree import Line
from agent.tracing.trace import Summary, Trace, TraceWithJobs, span_json
from memory.audience import Place
from memory.errors import how_to_install

Format = Literal["json", "md", "html", "otlp", "otlp-protobuf"]


def exported(traces: Sequence[TraceWithJobs], format: Format) -> str | bytes:
    """Return all traces as one file. Raises BadInput if the format needs an extra that is not installed."""
    writers: dict[Format, Callable[[Sequence[TraceWithJobs]], str | bytes]] = {
        "json": lambda all: json_text([trace_json(one) for one in all], indent=2) + "\n",
        "md": lambda all: "\n".join(markdown(one) for one in all),
        "html": _html,
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


def _html(traces: Sequence[TraceWithJobs]) -> str:
    """Return one page without scripts that loads nothing from elsewhere. Bars show how long spans took."""
    from jinja2 import Environment  # here: the listing of traces has no page, and starts faster

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["duration"] = duration
    source = files("agent.tracing.render").joinpath("page.html").read_text(encoding="utf-8")
    title = f"Trace {traces[0].trace.summary.short}" if len(traces) == 1 else f"{len(traces)} traces"
    articles = [_article(one) for one in traces]
    return environment.from_string(source).render(title=title, articles=articles)


def _article(whole: TraceWithJobs) -> dict[str, object]:
    trace, summary = whole.trace, whole.trace.summary
    afterwards = jobs_node([full(one) for one in whole.jobs])
    return {
        "summary": summary,
        "title": one_line(summary.said or summary.kind, 120),
        "heading": heading(summary),
        "warnings": warnings(trace),
        "nodes": [full(trace), afterwards] if whole.jobs else [full(trace)],
        "length": max((span.at + (span.took or 0.0) for span in trace.spans()), default=0.0),
    }


def _otlp(form: Literal["otlp_json", "otlp_protobuf"], traces: Sequence[TraceWithJobs]) -> Any:
    try:
        otlp = import_module("agent.tracing.otlp.spans")
    except ImportError as error:
        raise BadInput(f"the format otlp needs its library: {how_to_install('otel')}") from error
    return getattr(otlp, form)([trace for one in traces for trace in (one.trace, *one.jobs)])
