"""Exports traces as JSON or Markdown, and parses the JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from pydantic import TypeAdapter

from agent.tracing.render.text import json_text
from agent.tracing.render.trace import trace_lines
from agent.tracing.render.tree import Line
from agent.tracing.trace import Summary, Trace, TraceWithJobs, place_key, span_from, span_json
from memory.audience import Place


def export_json(traces: Sequence[TraceWithJobs]) -> str:
    """Return the traces as one JSON file."""
    return json_text([trace_json(one) for one in traces], indent=2) + "\n"


def read_export(text: str) -> list[TraceWithJobs]:
    """Parse the text of `export_json`. Raises ValueError for any other text."""
    try:
        found = [
            TraceWithJobs(_trace_from(one), [_trace_from(job) for job in one["afterwards"]])
            for one in json.loads(text)
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"no exported trace, or one of another Hachi ({error!r})") from error
    if not found:
        raise ValueError("no trace is in it")
    return found


def _trace_from(value: Mapping[str, Any]) -> Trace:
    tools = [one["name"] + "!" * (not one["ok"]) for one in value["tools"]]
    place = place_key(Place.parse(value["place"]))
    summary = TypeAdapter(Summary).validate_python({**value, "tools": tools, "place": place})
    return Trace(summary, span_from(value["root"]), value["made_by"], value["redacted"])


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON values."""
    tools = [{"name": name.removesuffix("!"), "ok": not name.endswith("!")} for name in summary.tools]
    told = asdict(summary) | {"place": str(Place.of_key(summary.place)), "tools": tools}
    return told | {"cost": summary.cost, "trouble": summary.trouble}


def trace_json(whole: TraceWithJobs) -> dict[str, Any]:
    """Return the summary's fields with `redacted`, `made_by`, the spans below `root`, and the jobs in
    `afterwards`."""
    return _trace_json(whole.trace) | {"afterwards": [_trace_json(trace) for trace in whole.jobs]}


def _trace_json(trace: Trace) -> dict[str, Any]:
    rest = {"redacted": trace.redacted, "made_by": trace.made_by, "root": span_json(trace.root)}
    return summary_json(trace.summary) | rest


def markdown(whole: TraceWithJobs) -> str:
    """Return the overview, then all details, as Markdown to paste into an issue or a chat."""
    short, full = (_fenced(trace_lines(whole.trace, whole.jobs, full=full)) for full in (False, True))
    summary = whole.trace.summary
    return f"# Trace {summary.short}\n\n`{summary.id}`\n\n{short}\n\n## Everything\n\n{full}\n"


def _fenced(lines: Sequence[Line]) -> str:
    """Return the lines in a fence longer than any in the text, so that the text cannot close it."""
    text = "\n".join(map(str, lines))
    ticks = max((len(list(run)) for tick, run in groupby(text) if tick == "`"), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{fence}text\n{text}\n{fence}"
