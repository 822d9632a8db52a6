"""Show the list of traces with its filters, and its live updates."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import HTMLResponse

from agent.errors import BadInput, HachiError
from agent.surfaces.web.pages import page, render
from agent.surfaces.web.sign_in import Visitor, require_visit, visitor_of
from agent.tracing.store.filters import TraceFilter, read_place, read_seconds, read_since
from agent.tracing.store.follow import follow
from agent.tracing.store.traces import Traces
from agent.tracing.trace import TURN, Summary

PAGE = 50
"""Traces on a page."""
READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "user": str,
    "place": read_place,
    "tool": str,
    "failed": bool,
    "slower": read_seconds,
}
"""How to parse the form's fields for a TraceFilter."""

router = APIRouter(dependencies=[Depends(require_visit)])


@dataclass(frozen=True, slots=True)
class Query:
    """The filters of the list, as in the page's address."""

    fields: Mapping[str, str]
    """The fields as typed, without empty ones."""
    filter: TraceFilter

    @property
    def before(self) -> str | None:
        """Return the id of the trace after which the page begins."""
        return self.fields.get("before")

    @property
    def filtered(self) -> bool:
        return any(name != "before" for name in self.fields)

    def address(self, path: str = "/traces", **changes: str | None) -> str:
        """Return the address with changed fields. It starts at the newest trace again."""
        fields = {**self.fields, "before": None, **changes}
        filled = {name: value for name, value in fields.items() if value}
        return f"{path}?{urlencode(filled, errors='replace')}" if filled else path


def read_query(parameters: Mapping[str, str], now: datetime, visitor: Visitor) -> Query:
    """Parse the parameters. Only an admin may see other people's traces. Raises BadInput."""
    fields = _fields(parameters)
    read = {name: READERS[name](value) for name, value in fields.items() if name in READERS}
    since = read_since(fields["since"], now) if "since" in fields else None
    kinds = frozenset[str]() if "kind" in fields else frozenset({TURN})
    if not visitor.admin:
        read["user"] = visitor.user
    return Query(fields, TraceFilter(since=since, kinds=kinds, **read))


def _fields(parameters: Mapping[str, str]) -> dict[str, str]:
    names = (*READERS, "since", "kind", "before")
    return {name: value for name in names if (value := parameters.get(name, "").strip())}


@router.get("/traces")
async def newest(request: Request) -> HTMLResponse:
    """Show traces, newest first; for invalid filters, the form with the error."""
    now = request.app.state.clock()
    wrong, status = "", 200
    try:
        query = read_query(request.query_params, now, visitor_of(request))
        traces, older = await _trace_page(request.app.state.traces, query, now)
    except BadInput as error:
        query, traces, older = Query(_fields(request.query_params), TraceFilter()), [], None
        wrong, status = str(error), 400
    return page(request, "list.html", status=status, query=query, found=traces, older=older, wrong=wrong)


async def _trace_page(traces: Traces, query: Query, now: datetime) -> tuple[list[Summary], str | None]:
    """Return the page's traces and the id after which the next page begins. The store limits the rows before
    it filters apparent failures, so this requests twice as many."""
    most = 2 * PAGE if query.filter.failed else PAGE + 1
    summaries = await traces.list(query.filter, now, most, before=query.before)
    return summaries[:PAGE], summaries[PAGE - 1].id if len(summaries) > PAGE else None


@router.get("/live")
async def live(request: Request) -> EventSourceResponse:
    """Stream each new or changed trace, as a row of the list."""
    state = request.app.state
    query = read_query(request.query_params, state.clock(), visitor_of(request))
    return EventSourceResponse(live_rows(state.traces, query, state.clock, state.stopping))


async def live_rows(
    traces: Traces, query: Query, clock: Callable[[], datetime], stopping: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent]:
    ready = False
    with suppress(HachiError):  # the stream ends and the browser reconnects by itself
        async for changed in follow(traces, query.filter, clock, lambda one: one, stopping):
            for one in changed if ready else ():
                row = render("row.html", query=query, one=one, fresh=True)
                yield ServerSentEvent(event="trace", id=one.id, data=row)
            if not ready:
                yield ServerSentEvent(event="ready", data="")
                ready = True
