"""Two traces side by side."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from agent.errors import BadInput
from agent.surfaces.web.compared import sides
from agent.surfaces.web.rendering import page
from agent.tracing.compare import differences
from agent.tracing.store import Traces

MOST = 100
"""Differences that are shown."""

router = APIRouter()


@router.get("/compare")
async def compare(request: Request) -> HTMLResponse:
    """`?id=…&id=…`: the earlier of the two first."""
    traces: Traces = request.app.state.traces
    now = request.app.state.clock()
    ids = [id.strip()[:100] for id in request.query_params.getlist("id") if id.strip()]
    if len(ids) != 2:
        raise BadInput("choose two traces to compare")
    one, other = [await traces.get(id, now) for id in ids]
    before, after = sorted((one, other), key=lambda trace: trace.summary.started_at)
    found = differences(before, after)
    shown = [(difference, sides(difference.before, difference.after)) for difference in found[:MOST]]
    return page(
        request,
        "compare.html",
        before=before.summary,
        after=after.summary,
        shown=shown,
        number=len(found),
    )
