"""Show statistics of turns: charts by day, and tables by person, model and surface."""

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse

from agent.surfaces.web.pages import page
from agent.surfaces.web.sign_in import require_visit, visitor_of
from agent.tracing.store.filters import TraceFilter, read_since
from agent.tracing.store.stats import GROUPS, stats_of

USUAL = timedelta(days=30)
CHARTS = {"turns": "Turns", "errors": "Errors", "p95": "Seconds, p95", "cost": "Cost"}
"""The charts: a figure by day, with its title."""
WIDTH, HEIGHT = 600.0, 60.0
FEWEST = 30
"""The fewest days that a chart has room for, so that one day's bar does not fill the page."""

router = APIRouter(dependencies=[Depends(require_visit)])


@router.get("/statistics")
async def statistics(request: Request) -> HTMLResponse:
    """Show the statistics since `?since=7d`: everybody's for an admin, else the visitor's own."""
    pet, visitor = request.app.state.pet, visitor_of(request)
    written = request.query_params.get("since", "").strip()
    since = read_since(written, pet.clock()) if written else pet.clock() - USUAL
    wanted = TraceFilter(user=None if visitor.admin else visitor.user, since=since, kinds=frozenset())
    figures = await stats_of(pet.traces, wanted)
    waiting = await pet.admin.pending_consolidations()
    charts = [(title, _bars(figures["days"], name)) for name, title in CHARTS.items()]
    tables = [(name, figures[name]) for name in GROUPS]
    return page(
        request,
        "statistics.html",
        total=figures["total"],
        charts=charts,
        tables=tables,
        waiting=waiting,
        since=written,
    )


def _bars(days: dict[str, dict[str, Any]], name: str) -> list[tuple[float, float, float, str]]:
    """Return left, width, height and label of a bar for each day; empty if there is nothing."""
    values = {day: float(counted[name] or 0) for day, counted in days.items()}
    most, step = max(values.values(), default=0.0), WIDTH / max(FEWEST, len(values))
    return [
        (place * step, max(1.0, step - 2), HEIGHT * value / most, f"{day}: {value:g}")
        for place, (day, value) in enumerate(values.items())
        if most
    ]
