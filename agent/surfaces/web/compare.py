"""The page that compares two traces side by side."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from agent.errors import BadInput
from agent.surfaces.web.templates import page
from agent.surfaces.web.word_diff import word_diff
from agent.tracing.compare import differences
from agent.tracing.store import Traces

MAX_SHOWN = 100
"""Differences on the page."""

router = APIRouter()


@router.get("/compare")
async def compare(request: Request) -> HTMLResponse:
    """`?id=…&id=…`: the earlier of the two first."""
    traces: Traces = request.app.state.traces
    ids = [id.strip()[:100] for id in request.query_params.getlist("id") if id.strip()]
    if len(ids) != 2:
        raise BadInput("choose two traces to compare")
    chosen = [await traces.get(id, request.app.state.clock()) for id in ids]
    before, after = sorted(chosen, key=lambda trace: trace.summary.started_at)
    found = differences(before, after)
    return page(
        request,
        "compare.html",
        before=before.summary,
        after=after.summary,
        shown=[(one, word_diff(one.before, one.after)) for one in found[:MAX_SHOWN]],
        number=len(found),
    )
