"""`hachi traces tail`: turns as they come and end, of whatever process records them here."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.session import Session, running
from agent.surfaces.cli.traces.options import (
    Failed,
    InPlace,
    OfUser,
    Slower,
    Text,
    WithTool,
    WithWork,
    wanted,
)

if TYPE_CHECKING:
    from agent.tracing.store import TraceFilter, Traces
    from agent.tracing.trace import Summary

PAUSE = 0.5
"""Seconds between two looks."""
NEWEST = 200
"""Traces that each look takes in. What goes on below these is told no more."""
REMEMBERED = 5_000


def tail(
    context: typer.Context,
    user: OfUser = None,
    place: InPlace = None,
    tool: WithTool = None,
    error: Failed = False,
    text: Text = None,
    slower: Slower = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="So many of before, first.")] = 10,
    all: WithWork = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Follow turns as they begin and end, until Ctrl-C."""
    asked = wanted(user, place, tool, error, text, None, slower, all)
    with suppress(KeyboardInterrupt):
        _tail(context.obj, asked, limit, json)


@running
async def _tail(session: Session, asked: "TraceFilter", limit: int, json: bool) -> None:
    from agent.surfaces.cli.traces.lines import heads, one_row
    from agent.tracing.export import summary_json
    from agent.tracing.render.text import json_text

    async with session.traces() as traces:
        if not json:
            print(heads(), flush=True)
        async for summary in followed(traces, asked, limit):
            line = json_text(summary_json(summary)) if json else one_row(summary, datetime.now(UTC))
            print(line, flush=True)


async def followed(
    traces: "Traces", asked: "TraceFilter", before: int, pause: float = PAUSE
) -> "AsyncIterator[Summary]":
    """So many of before, then each as it is first heard of, and again when it has become something else."""
    newest = await traces.list(asked, datetime.now(UTC), NEWEST)
    told = OrderedDict((summary.id, summary.status) for summary in reversed(newest))
    for summary in reversed(newest[:before]):
        yield summary
    begun = newest[-1].started_at if len(newest) == NEWEST else None
    while True:
        await asyncio.sleep(pause)
        for summary in reversed(await traces.list(asked, datetime.now(UTC), NEWEST)):
            old = begun is not None and summary.started_at < begun  # comes into sight as others are deleted
            if told.get(summary.id) != summary.status and not old:
                told[summary.id] = summary.status
                told.move_to_end(summary.id)
                yield summary
        while len(told) > REMEMBERED:
            told.popitem(last=False)
