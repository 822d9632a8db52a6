"""`hachi traces`: what happened in a turn, and why. This module lists, shows and compares; the other
commands of the group have modules of their own."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from agent.surfaces.cli.options import Json
from agent.surfaces.cli.session import Session, running, say
from agent.surfaces.cli.traces import export, replay, serve, stats, tail
from agent.surfaces.cli.traces.options import (
    Failed,
    InPlace,
    OfUser,
    Since,
    Slower,
    Text,
    TraceId,
    WithTool,
    WithWork,
    wanted,
)

group = typer.Typer(help="See what happened in each turn, and why.", rich_markup_mode=None)
group.command("tail")(tail.tail)
group.command("export")(export.export)
group.command("prune")(export.prune)
group.command("replay")(replay.replay)
group.command("to-test")(replay.to_test)
group.command("stats")(stats.stats)
group.command("serve")(serve.serve)


@group.command()
@running
async def ls(
    context: typer.Context,
    user: OfUser = None,
    place: InPlace = None,
    tool: WithTool = None,
    error: Failed = False,
    text: Text = None,
    since: Since = None,
    slower: Slower = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    all: WithWork = False,
    json: Json = False,
) -> None:
    """Turns, newest first."""
    session: Session = context.obj
    from agent.surfaces.cli.traces.lines import print_summaries
    from agent.tracing.export import summary_json
    from agent.tracing.render.text import json_text

    now = datetime.now(UTC)
    async with session.traces() as traces:
        found = await traces.list(wanted(user, place, tool, error, text, since, slower, all), now, limit)
    if json:
        print(json_text([summary_json(one) for one in found], indent=2))
    elif found:
        print_summaries(found, now)
    elif not session.settings().traces:
        say("there is no such trace; HACHI_TRACES is off, so that nothing new is recorded")
    else:
        say("there is no such trace")


@group.command()
@running
async def show(
    context: typer.Context,
    id: TraceId = "last",
    full: Annotated[
        bool, typer.Option("--full", help="Everything: exact requests, outputs, results.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """One turn as a tree, and what was done after it; the newest unless said."""
    session: Session = context.obj
    from agent.surfaces.cli.traces.lines import print_lines

    async with session.traces() as traces:
        found = await traces.get_with_jobs(id, datetime.now(UTC))
    if json:
        from agent.tracing.export import trace_json
        from agent.tracing.render.text import json_text

        print(json_text(trace_json(found), indent=2))
    elif full:
        from agent.tracing.render.full import full_lines

        print_lines(full_lines(found.trace, found.jobs))
    else:
        from agent.tracing.render.overview import overview_lines

        print_lines(overview_lines(found.trace, found.jobs))


@group.command()
@running
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
    from dataclasses import asdict

    from agent.errors import FAULTS
    from agent.surfaces.cli.traces.differences import difference_lines
    from agent.surfaces.cli.traces.lines import print_lines
    from agent.tracing.compare import differences
    from agent.tracing.render.text import json_text

    try:
        async with session.traces() as traces:
            one, other = [await traces.get(id, datetime.now(UTC)) for id in (before, after)]
    except FAULTS as error:
        session.complain(error)
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
