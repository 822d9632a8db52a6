"""The list of traces, and its live updates."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from time import perf_counter

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import HTMLResponse

from agent.errors import FAULTS, BadInput
from agent.surfaces.web.query import MAX_FIELD, Query, read_query
from agent.surfaces.web.templates import page, render
from agent.tracing.store import TraceFilter, Traces
from agent.tracing.trace import Summary

PAGE = 50
"""Traces on a page."""
PAUSE = 0.7
"""Seconds between two reads of a live list, at least."""
PAUSE_RATIO = 10
"""The pause after a slow read, as a multiple of the read's duration."""

router = APIRouter()


@router.get("/")
async def newest(request: Request) -> HTMLResponse:
    """Newest first. With filters that cannot be read, the form with what is wrong."""
    now = request.app.state.clock()
    wrong, status = "", 200
    try:
        query = read_query(request.query_params, now)
        found, older = await _page_of(request.app.state.traces, query, now)
    except BadInput as error:
        kept = {name: value[:MAX_FIELD] for name, value in request.query_params.items() if name != "before"}
        query, found, older, wrong, status = Query(kept, TraceFilter()), [], None, str(error), 400
    return page(request, "list.html", status=status, query=query, found=found, older=older, wrong=wrong)


async def _page_of(traces: Traces, query: Query, now: datetime) -> tuple[list[Summary], str | None]:
    """Return the page's traces and the id below which the next page begins. The store filters apparent
    failures after it has counted rows, so this requests twice as many."""
    most = 2 * PAGE if query.filter.failed else PAGE + 1
    found = await traces.list(query.filter, now, most, before=query.before)
    return found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else None


@router.get("/live")
async def live(request: Request) -> EventSourceResponse:
    """Each trace that begins or changes, as a row of the list."""
    state = request.app.state
    query = read_query(request.query_params, state.clock())
    return EventSourceResponse(live_rows(state.traces, query, state.clock, state.stopping))


async def live_rows(
    traces: Traces, query: Query, clock: Callable[[], datetime], stopping: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    shown: dict[str, Summary] | None = None
    while not stopping():
        begun = perf_counter()
        try:
            found = await traces.list(query.filter, clock(), PAGE)
        except FAULTS:  # the stream ends, and the browser connects again by itself
            return
        if shown is None:
            shown = {one.id: one for one in found}
            yield ServerSentEvent(event="ready", data="")
        changed = [one for one in reversed(found) if shown.get(one.id) != one]
        shown = {one.id: one for one in found}
        for one in changed:
            row = render("row.html", query=query, one=one, fresh=True)
            yield ServerSentEvent(event="trace", id=one.id, data=row)
        for _ in range(int(max(PAUSE, PAUSE_RATIO * (perf_counter() - begun)) / 0.1)):
            await asyncio.sleep(0.1)
            if stopping():
                return
