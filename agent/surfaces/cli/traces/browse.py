"""`hachi traces`: list, follow, show, compare, count, export and prune turns. `replay.py` replays them."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agent.errors import HachiError
from agent.surfaces.cli.operate.servers import serve_traces
from agent.surfaces.cli.options import DryRun, Limit, Yes, moment, read_by, user_option
from agent.surfaces.cli.output import Output, confirm, give_back, print_table, say, write_output
from agent.surfaces.cli.session import (
    Companion,
    Session,
    Traces,
    now,
    takes,
    with_companion,
    with_session,
    with_traces,
)
from agent.surfaces.cli.traces import replay
from agent.surfaces.cli.traces.lines import (
    WHICH,
    TraceId,
    difference_lines,
    print_lines,
    print_turns,
    turn_line,
)
from agent.tracing.differences import differences
from agent.tracing.render.export import export_json, markdown, summary_json, trace_json
from agent.tracing.render.text import count, duration, json_text, money, when
from agent.tracing.render.trace import trace_lines
from agent.tracing.store.filters import TraceFilter, read_place, read_seconds
from agent.tracing.trace import TURN

group = typer.Typer(help="See what happened in each turn, and why.", rich_markup_mode=None)

DEFAULT_SINCE = "7d"
STATISTICS = {name: name for name in ("turns", "errors", "searched", "p50", "p95")}
STATISTICS |= {"first_p50": "first", "input": "in", "cached": "cached", "output": "out"}
STATISTICS |= {"upkeep_tokens": "consolidation", "cost": "cost"}
"""The columns that `stats` prints, with their headings."""


def _filter(
    user: Annotated[str | None, user_option(help="Only what this person said.")] = None,
    place: Annotated[
        str | None,
        typer.Option(
            parser=read_by(read_place),
            metavar="dm|NAME",
            help="Only in private (dm), or in a place such as acme and the places in it.",
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Only if this tool was called.")] = None,
    error: Annotated[bool, typer.Option("--error", help="Only if something failed.")] = False,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only if the trace contains this text.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="Only since: 2h, 1d, 2026-01-10."),
    ] = None,
    slower: Annotated[
        float | None,
        typer.Option(
            parser=read_by(read_seconds), metavar="TIME", help="Only if the turn took longer: 2s, 500ms."
        ),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Background jobs too.")] = False,
) -> TraceFilter:
    kinds = frozenset[str]() if all else frozenset({TURN})
    return TraceFilter(user, place, tool, error, text, since, slower, kinds)


@group.command()
@with_traces
@takes(_filter)
async def ls(traces: Traces, wanted: TraceFilter, limit: Limit = 20) -> Output:
    """List turns, newest first."""
    found = await traces.list(wanted, now(), limit)
    none = "there is no trace yet; none is recorded while HACHI_TRACE_CONTENT is off"
    if wanted != TraceFilter(kinds=wanted.kinds) and await traces.count(TraceFilter(kinds=frozenset())):
        none = "no trace fits these filters; without them there are some"
    return Output([summary_json(one) for one in found], lambda: print_turns(found) if found else say(none))


@group.command()
@with_traces
@takes(_filter)
async def tail(
    traces: Traces,
    wanted: TraceFilter,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="How many earlier turns to show first.")
    ] = 10,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Follow turns as they begin and end, until Ctrl-C."""
    from agent.tracing.store.follow import follow

    first = True
    with suppress(asyncio.CancelledError):  # ends with Ctrl-C
        async for changed in follow(traces, wanted, now, lambda one: one.status):
            for summary in changed[max(0, len(changed) - limit) :] if first else changed:
                if json:
                    print(json_text(summary_json(summary)), flush=True)
                else:
                    print_lines([turn_line(summary)])
            first = False


@group.command()
@with_traces
async def show(
    traces: Traces,
    id: TraceId = "last",
    full: Annotated[bool, typer.Option("--full", help="Show exact requests, outputs and results.")] = False,
) -> Output:
    """Show one turn as a tree, with its background jobs; by default the newest."""
    found = await traces.get_with_jobs(id, now())
    if full:
        await traces.add_skipped_texts(found.trace, now())
    return Output(
        trace_json(found), lambda: print_lines(trace_lines(found.trace, found.jobs, full=full), whole=full)
    )


@group.command()
@with_session
async def diff(
    session: Session,
    before: TraceId,
    after: TraceId,
    full: Annotated[bool, typer.Option("--full", help="Show each text whole.")] = False,
) -> Output:
    """Show what differs between two turns.

    Differences come in the order of the turns; times and ids are ignored. Exit 0 if they are the same, 1 if
    they differ, 2 if they cannot be compared.
    """
    try:
        async with session.traces() as traces:
            one, other = [await traces.get(id, now()) for id in (before, after)]
    except HachiError as error:
        session.report(error)
        raise typer.Exit(2) from None
    found = differences(one, other)

    def text() -> None:
        if found:
            print_lines(difference_lines(one.summary, other.summary, found, whole=full), whole=full)
        else:
            say(f"{one.summary.short} and {other.summary.short} are the same")

    return Output([asdict(difference) for difference in found], text, code=1 if found else 0)


@group.command()
@with_traces
async def export(
    traces: Traces,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help=f"Each an {WHICH}")],
    format: Annotated[Literal["json", "md"], typer.Option("--format")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default, and with -: stdout.")
    ] = None,
) -> None:
    """Write traces as one file: JSON, which `replay` reads, or Markdown.

    The file includes their background jobs.
    """
    found = [await traces.get_with_jobs(id, now()) for id in ids]
    what = f"{len(found)} {'trace is' if len(found) == 1 else 'traces are'}"
    text = export_json(found) if format == "json" else "\n".join(map(markdown, found))
    write_output(output, text, what)


@group.command()
@with_traces
async def prune(
    traces: Traces,
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


@group.command()
@with_companion
@takes(_filter, "all")
async def stats(pet: Companion, wanted: TraceFilter) -> Output:
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
    print_table(("", *STATISTICS.values()), rows)
    for name, counted in data["tools"].items():
        print(f"tool {name}: {counted['calls']:,} calls, {counted['errors']:,} errors")
    if number := data["upkeep_waiting"]["jobs"]:
        print(f"{number:,} consolidations wait for calls of their budget")


def _cells(counted: Mapping[str, Any]) -> list[str]:
    shown = {"p50": duration, "p95": duration, "first_p50": duration, "cost": money}
    return [shown.get(name, "{:,}".format)(counted[name]) for name in STATISTICS]


group.command()(replay.replay)
group.command("to-test")(replay.to_test)
group.command("serve")(serve_traces)
