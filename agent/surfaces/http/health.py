"""Whether the server is well, and its figures."""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from agent.companion import Companion
from agent.errors import FAULTS
from agent.surfaces.http.figures import Figures
from agent.surfaces.http.identity import Pet, only_admins

SECONDS = 5.0
"""What one look may take."""

router = APIRouter(tags=["health"])

READY = {"status": "ready", "checks": {"record": "ok", "index": "ok", "model": "ok"}}


@router.get("/healthz", responses={200: {"content": {"application/json": {"example": {"status": "ok"}}}}})
async def healthz() -> dict[str, str]:
    """The process is there and answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={200: {"content": {"application/json": {"example": READY}}}})
async def readyz(pet: Pet) -> JSONResponse:
    """The record and the index can be reached, and a model is chosen; 503 where one of them is not so. The
    model itself is not asked: that costs."""
    checks = {
        "record": await _look(pet.components.database.revision),
        "index": await _look(pet.components.index.count),
        "model": await _look(lambda: _model(pet)),
    }
    ready = set(checks.values()) == {"ok"}
    content = {"status": "ready" if ready else "not ready", "checks": checks}
    return JSONResponse(content, 200 if ready else 503)


async def _look(look: Callable[[], Awaitable[object]]) -> str:
    """Only whether; why not is for `hachi doctor`, since anybody may ask here."""
    try:
        async with asyncio.timeout(SECONDS):
            await look()
    except (*FAULTS, TimeoutError):
        return "away"
    return "ok"


async def _model(pet: Companion) -> str:
    return pet.settings.chosen_model


@router.get("/metrics", dependencies=[Depends(only_admins)], response_class=Response)
async def metrics(request: Request, pet: Pet) -> Response:
    """Figures for Prometheus, over everybody's data and without content; for an admin's key."""

    figures: Figures = request.app.state.figures
    return Response(
        figures.exposed(await pet.services.statistics.totals()), media_type="text/plain; version=0.0.4"
    )
