"""`hachi traces`: list, follow, show and compare turns. The other commands of the group have their own
modules."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import HachiError
from agent.surfaces.cli.operate.servers import serve_traces
from agent.surfaces.cli.options import Limit
from agent.surfaces.cli.output import Output, say
from agent.surfaces.cli.session import Session, now, with_session, with_traces
from agent.surfaces.cli.traces import export, replay
from agent.surfaces.cli.traces.lines import difference_lines, print_lines, print_turns, turn_line
from agent.surfaces.cli.traces.options import TraceId, filtered
from agent.tracing.differences import differences
from agent.tracing.render.export import summary_json, trace_json
from agent.tracing.render.text import json_text
from agent.tracing.render.trace import trace_lines
from agent.tracing.store.filters import TraceFilter

if TYPE_CHECKING:
    from agent.tracing.store.traces import Traces

group = typer.Typer(help="See what happened in each turn, and why.", rich_markup_mode=None)


@group.command()
@with_traces
@filtered()
async def ls(traces: "Traces", wanted: TraceFilter, limit: Limit = 20) -> Output:
    """List turns, newest first."""
    found = await traces.list(wanted, now(), limit)
    none = "there is no trace yet; none is recorded while HACHI_TRACE_CONTENT is off"
    if wanted != TraceFilter(kinds=wanted.kinds) and await traces.count(TraceFilter(kinds=frozenset())):
        none = "no trace fits these filters; without them there are some"
    return Output([summary_json(one) for one in found], lambda: print_turns(found) if found else say(none))


@group.command()
@with_traces
@filtered()
async def tail(
    traces: "Traces",
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
    traces: "Traces",
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


for _name, _command in {
    "export": export.export,
    "prune": export.prune,
    "replay": replay.replay,
    "to-test": replay.to_test,
    "stats": export.stats,
    "serve": serve_traces,
}.items():
    group.command(_name)(_command)
