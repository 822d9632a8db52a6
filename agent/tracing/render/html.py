"""Renders traces as one HTML page without scripts that loads nothing from elsewhere."""

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment

from agent.tracing.render.full import full
from agent.tracing.render.overview import heading, jobs_node, warnings
from agent.tracing.render.text import duration, one_line
from agent.tracing.render.tree import Node
from agent.tracing.trace import TraceWithJobs

TEMPLATE = "page.html"


def page(traces: Sequence[TraceWithJobs]) -> str:
    """Return the page. Nodes are collapsible lists; a bar shows how long each span took."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["duration"] = duration
    source = files("agent.tracing.render").joinpath(TEMPLATE).read_text(encoding="utf-8")
    title = f"Trace {traces[0].trace.summary.short}" if len(traces) == 1 else f"{len(traces)} traces"
    articles = [_article(one) for one in traces]
    return environment.from_string(source).render(title=title, articles=articles)


def _article(whole: TraceWithJobs) -> dict[str, object]:
    trace, summary = whole.trace, whole.trace.summary
    nodes: list[Node] = [full(trace)]
    if whole.jobs:
        nodes.append(jobs_node([full(one) for one in whole.jobs]))
    return {
        "summary": summary,
        "title": one_line(summary.said or summary.kind, 120),
        "heading": heading(summary),
        "warnings": warnings(trace),
        "nodes": nodes,
        "length": max((span.at + (span.took or 0.0) for span in trace.spans()), default=0.0),
    }
