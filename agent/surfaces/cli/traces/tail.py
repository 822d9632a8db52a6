"""`hachi traces tail`: turns as they begin and end, in whatever process."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.session import Session, async_command
from agent.surfaces.cli.traces.options import (
    Failed,
    InPlace,
    OfUser,
    Slower,
    WithJobs,
    WithText,
    WithTool,
    trace_filter,
)

if TYPE_CHECKING:
    from agent.tracing.store import TraceFilter, Traces
    from agent.tracing.trace import Summary

PAUSE = 0.5
"""Seconds between two reads."""
NEWEST = 200
"""Traces of one read. Changes of older ones are missed."""
MAX_KNOWN = 5_000


def tail(
    context: typer.Context,
    user: OfUser = None,
    place: InPlace = None,
    tool: WithTool = None,
    error: Failed = False,
    text: WithText = None,
    slower: Slower = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="So many of before, first.")] = 10,
    all: WithJobs = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Follow turns as they begin and end, until Ctrl-C."""
    wanted = trace_filter(user, place, tool, error, text, None, slower, all)
    with suppress(KeyboardInterrupt):
        _tail(context.obj, wanted, limit, json)


@async_command
async def _tail(session: Session, wanted: "TraceFilter", limit: int, json: bool) -> None:
    from agent.surfaces.cli.traces.lines import headings, summary_line
    from agent.tracing.render.export import summary_json
    from agent.tracing.render.text import json_text

    async with session.traces() as traces:
        if not json:
            print(headings(), flush=True)
        async for summary in followed(traces, wanted, limit):
            line = json_text(summary_json(summary)) if json else summary_line(summary, datetime.now(UTC))
            print(line, flush=True)


async def followed(
    traces: "Traces", wanted: "TraceFilter", before: int, pause: float = PAUSE
) -> "AsyncIterator[Summary]":
    """So many earlier ones, then each trace when it appears and when its status changes."""
    newest = await traces.list(wanted, datetime.now(UTC), NEWEST)
    known = OrderedDict((summary.id, summary.status) for summary in reversed(newest))
    for summary in reversed(newest[:before]):
        yield summary
    oldest = newest[-1].started_at if len(newest) == NEWEST else None
    while True:
        await asyncio.sleep(pause)
        for summary in reversed(await traces.list(wanted, datetime.now(UTC), NEWEST)):
            if oldest is not None and summary.started_at < oldest:
                continue  # it moved up because others were deleted
            if known.get(summary.id) != summary.status:
                known[summary.id] = summary.status
                known.move_to_end(summary.id)
                yield summary
        while len(known) > MAX_KNOWN:
            known.popitem(last=False)
