"""The list of traces, and the same as it goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import HTMLResponse

from agent.errors import FAULTS, BadInput
from agent.surfaces.web.asked import Asked, asked
from agent.surfaces.web.rendering import page, render
from agent.tracing.store import TraceFilter, Traces
from agent.tracing.trace import Summary

PAGE = 50
"""Traces of one page."""
PAUSE = 0.7
"""Seconds between two looks, of the list that goes on."""
SHARE = 10
"""A look that took long is followed by a pause so many times as long."""

router = APIRouter()


@router.get("/")
async def newest(request: Request) -> HTMLResponse:
    """The newest first; an address that cannot be read is shown with what is wrong with it."""
    now = request.app.state.clock()
    wrong, status = "", 200
    try:
        query = asked(request.query_params, now)
        found, older = await _listed(request.app.state.traces, query, now)
    except BadInput as error:
        kept = {name: value[:300] for name, value in request.query_params.items() if name != "before"}
        query, found, older, wrong, status = Asked(kept, TraceFilter()), [], None, str(error), 400
    return page(
        request, "list.html", status=status, query=query, found=found, older=older, wrong=wrong, now=now
    )


async def _listed(traces: Traces, query: Asked, now: datetime) -> tuple[list[Summary], str | None]:
    """And the id below which the list goes on, where it does. Of what failed more is asked for, since the
    store takes out what only looks as if it had been cut off."""
    most = 2 * PAGE if query.wanted.failed else PAGE + 1
    found = await traces.list(query.wanted, now, most, before=query.before)
    return found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else None


@router.get("/live")
async def live(request: Request) -> EventSourceResponse:
    """Each trace that is new or has gone on, as a row of the list."""
    state = request.app.state
    query = asked(request.query_params, state.clock())
    return EventSourceResponse(_rows(state.traces, query, state.clock, state.stopping))


async def _rows(
    traces: Traces, query: Asked, clock: Callable[[], datetime], stopping: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    shown: dict[str, Summary] | None = None
    while not stopping():
        begun = perf_counter()
        try:
            found = await traces.list(query.wanted, clock(), PAGE)
        except FAULTS:  # the record is away; the page says that nothing comes, and it goes on by itself
            return
        if shown is None:
            shown = {one.id: one for one in found}
            yield ServerSentEvent(event="ready", data="")
        changed = [one for one in reversed(found) if shown.get(one.id) != one]
        shown = {one.id: one for one in found}
        for one in changed:
            yield ServerSentEvent(event="trace", id=one.id, data=_row(query, one))
        for _ in range(int(max(PAUSE, SHARE * (perf_counter() - begun)) / 0.1)):
            await asyncio.sleep(0.1)
            if stopping():
                return


def _row(query: Asked, one: Summary) -> Any:
    return render("row.html", query=query, one=one, fresh=True)
