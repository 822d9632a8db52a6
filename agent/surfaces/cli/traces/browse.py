"""`hachi traces`: what happened in a turn, and why. This module lists, shows and compares; the other commands
of the group have modules of their own."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import FAULTS
from agent.surfaces.cli.options import Json, Limit
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import Session, async_command, with_traces
from agent.surfaces.cli.traces import export, replay, serve, stats, tail
from agent.surfaces.cli.traces.options import (
    Failed,
    InPlace,
    OfUser,
    Since,
    Slower,
    TraceId,
    WithJobs,
    WithText,
    WithTool,
    trace_filter,
)

if TYPE_CHECKING:
    from agent.tracing.store import Traces

group = typer.Typer(help="See what happened in each turn, and why.", rich_markup_mode=None)


@group.command()
@async_command
async def ls(
    context: typer.Context,
    user: OfUser = None,
    place: InPlace = None,
    tool: WithTool = None,
    error: Failed = False,
    text: WithText = None,
    since: Since = None,
    slower: Slower = None,
    limit: Limit = 20,
    all: WithJobs = False,
    json: Json = False,
) -> None:
    """Turns, newest first."""
    session: Session = context.obj
    from agent.surfaces.cli.traces.lines import print_summaries
    from agent.tracing.render.export import summary_json
    from agent.tracing.render.text import json_text

    wanted, now = trace_filter(user, place, tool, error, text, since, slower, all), datetime.now(UTC)
    async with session.traces() as traces:
        found = await traces.list(wanted, now, limit)
    if json:
        print(json_text([summary_json(one) for one in found], indent=2))
    elif found:
        print_summaries(found, now)
    else:
        off = "" if session.settings().traces else "; HACHI_TRACES is off, so that nothing new is recorded"
        say(f"there is no such trace{off}")


@group.command()
@with_traces
async def show(
    traces: "Traces",
    id: TraceId = "last",
    full: Annotated[
        bool, typer.Option("--full", help="Everything: exact requests, outputs, results.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """One turn as a tree, and what was done after it; the newest unless said."""
    from agent.surfaces.cli.traces.lines import print_lines
    from agent.tracing.render.export import trace_json
    from agent.tracing.render.full import full_lines
    from agent.tracing.render.overview import overview_lines
    from agent.tracing.render.text import json_text

    found = await traces.get_with_jobs(id, datetime.now(UTC))
    if json:
        print(json_text(trace_json(found), indent=2))
    else:
        print_lines((full_lines if full else overview_lines)(found.trace, found.jobs))


@group.command()
@async_command
async def diff(
    context: typer.Context,
    before: TraceId,
    after: TraceId,
    full: Annotated[bool, typer.Option("--full", help="Each text whole.")] = False,
    json: Json = False,
) -> None:
    """What is different in two turns, in the order in which it happened; times and ids are left aside.

    Exit 0 where they are the same, 1 where they differ, 2 where they cannot be compared.
    """
    session: Session = context.obj
    from agent.surfaces.cli.traces.differences import difference_lines
    from agent.surfaces.cli.traces.lines import print_lines
    from agent.tracing.compare import differences
    from agent.tracing.render.text import json_text

    try:
        async with session.traces() as traces:
            one, other = [await traces.get(id, datetime.now(UTC)) for id in (before, after)]
    except FAULTS as error:
        session.report(error)
        raise typer.Exit(2) from None
    found = differences(one, other)
    if json:
        print(json_text([asdict(difference) for difference in found], indent=2))
    elif found:
        print_lines(difference_lines(one.summary, other.summary, found, whole=full))
    else:
        say(f"{one.summary.short} and {other.summary.short} are the same")
    if found:
        raise typer.Exit(1)


for _name, _command in {
    "tail": tail.tail,
    "export": export.export,
    "prune": export.prune,
    "replay": replay.replay,
    "to-test": replay.to_test,
    "stats": stats.stats,
    "serve": serve.serve,
}.items():
    group.command(_name)(_command)
