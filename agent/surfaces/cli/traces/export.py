"""`hachi traces export`, `prune` and `stats`."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.surfaces.cli.options import DryRun, Yes, moment
from agent.surfaces.cli.output import Output, confirm, give_back, print_table, write_output
from agent.surfaces.cli.session import with_companion, with_traces
from agent.surfaces.cli.traces.options import TraceIds, filtered
from agent.tracing.render.export import export_json, markdown
from agent.tracing.render.text import count, duration, money, when
from agent.tracing.store.filters import TraceFilter

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.tracing.store.traces import Traces

DEFAULT_SINCE = "7d"
COLUMNS = {name: name for name in ("turns", "errors", "searched", "p50", "p95")}
COLUMNS |= {"first_p50": "first", "input": "in", "cached": "cached", "output": "out"}
COLUMNS |= {"upkeep_tokens": "consolidation", "cost": "cost"}
"""The columns that are printed, with their headings."""


@with_traces
async def export(
    traces: "Traces",
    ids: TraceIds,
    format: Annotated[Literal["json", "md"], typer.Option("--format")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default, and with -: stdout.")
    ] = None,
) -> None:
    """Write traces as one file: JSON, which `replay` reads, or Markdown.

    The file includes their background jobs.
    """

    found = [await traces.get_with_jobs(id, datetime.now(UTC)) for id in ids]
    what = f"{len(found)} {'trace is' if len(found) == 1 else 'traces are'}"
    text = export_json(found) if format == "json" else "\n".join(map(markdown, found))
    write_output(output, text, what)


@with_traces
async def prune(
    traces: "Traces",
    older: Annotated[
        datetime,
        typer.Option(
            parser=moment, metavar="TIME", help="Delete traces older than this: 30d, 2w, 2026-01-10."
        ),
    ],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Output:
    """Delete old traces of all people. Hachi itself deletes them after HACHI_TRACE_DAYS."""

    kept = TraceFilter(since=older, kinds=frozenset())
    old = await traces.count(TraceFilter(kinds=frozenset())) - await traces.count(kept)
    told = f"{count(old, 'trace')} from before {when(older)}"
    await confirm(yes or dry_run or not old, "deleted", "Delete them for good?", told)
    if not dry_run:
        old = await traces.prune(older)
        await give_back(traces.database)
    done = "would be deleted" if dry_run else "deleted"
    data = {"count": old, "dry_run": dry_run, "before": older}
    return Output(data, f"{count(old, 'trace')} {done}")


@with_companion
@filtered("all")
async def stats(pet: "Companion", wanted: TraceFilter) -> Output:
    """Count turns by day, person, model and surface: errors, times, tokens and cost, also of consolidation.

    By default it counts the last 7 days."""
    from agent.tracing.store.stats import stats_of

    begin = wanted.since or moment(DEFAULT_SINCE)
    found = await stats_of(pet.traces, replace(wanted, since=begin, kinds=frozenset()))
    waiting = await pet.admin.pending_consolidations()
    data = {"since": begin, **found, "upkeep_waiting": asdict(waiting)}
    return Output(data, lambda: _print_stats(data))


def _print_stats(data: Mapping[str, Any]) -> None:
    rows = [["all turns", *_cells(data["total"])]]
    for what in ("days", "people", "models", "surfaces"):
        rows += [[f"{what}: {name}", *_cells(counted)] for name, counted in data[what].items()]
    print_table(("", *COLUMNS.values()), rows)
    for name, counted in data["tools"].items():
        print(f"tool {name}: {counted['calls']:,} calls, {counted['errors']:,} errors")
    if number := data["upkeep_waiting"]["jobs"]:
        print(f"{number:,} consolidations wait for calls of their budget")


def _cells(counted: Mapping[str, Any]) -> list[str]:

    shown = {"p50": duration, "p95": duration, "first_p50": duration, "cost": money}
    return [shown.get(name, "{:,}".format)(counted[name]) for name in COLUMNS]
