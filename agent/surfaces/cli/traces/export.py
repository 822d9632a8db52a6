"""`hachi traces export` and `prune`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.surfaces.cli.options import Json, Yes
from agent.surfaces.cli.output import confirm, interactive, print_json, say, write_private_file
from agent.surfaces.cli.session import with_traces
from agent.surfaces.cli.traces.options import TraceIds, since

if TYPE_CHECKING:
    from agent.tracing.store import Traces


@with_traces
async def export(
    traces: "Traces",
    ids: TraceIds,
    format: Annotated[Literal["json", "md", "html", "otlp"], typer.Option("--format")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Unset or - is stdout.")
    ] = None,
) -> None:
    """Write traces, with what was done after them, as one file: JSON, Markdown, HTML or OTLP/JSON."""
    from agent.tracing.render.export import exported

    found = [await traces.get_with_jobs(id, datetime.now(UTC)) for id in ids]
    text = exported(found, format)
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return
    write_private_file(output, text)
    say(f"{len(found)} {'trace is' if len(found) == 1 else 'traces are'} in {output}")


@with_traces
async def prune(
    traces: "Traces",
    older: Annotated[
        datetime, typer.Option(parser=since, metavar="TIME", help="Than this: 30d, 2w, 2026-01-10.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many would go.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete old traces, everybody's. They go by themselves after HACHI_TRACE_DAYS."""
    from agent.tracing.render.text import count, when
    from agent.tracing.store import TraceFilter

    kept = TraceFilter(since=older, kinds=frozenset())
    old = await traces.count(TraceFilter(kinds=frozenset())) - await traces.count(kept)
    if old and not (dry_run or yes) and interactive():
        print(f"{count(old, 'trace')} from before {when(older)}")
        confirm("Delete them for good?", "deleted")
    if not dry_run:
        old = await traces.prune(older)
    if json:
        print_json({"count": old, "dry_run": dry_run, "before": older})
    else:
        print(f"{count(old, 'trace')} {'would be deleted' if dry_run else 'deleted'}")
