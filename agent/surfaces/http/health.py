"""Health checks and metrics."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Literal

from fastapi import APIRouter, Depends
from starlette.responses import Response
from typing_extensions import TypedDict

from agent.errors import HachiError
from agent.surfaces.http.authentication import Pet, require_admin
from agent.surfaces.http.metrics import Measured

CHECK_TIMEOUT = 5.0
"""Seconds for each check."""

router = APIRouter(tags=["health"])

State = Literal["ok", "away"]


class Checks(TypedDict):
    record: State
    index: State
    model: State


class Readiness(TypedDict):
    status: Literal["ready", "not ready"]
    checks: Checks
    left_alone: list[str]


@router.get("/healthz", responses={200: {"content": {"application/json": {"example": {"status": "ok"}}}}})
async def healthz() -> dict[str, str]:
    """The process runs and answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"model": Readiness}})
async def readyz(pet: Pet, response: Response) -> Readiness:
    """The database and the index can be reached, and a model is chosen; 503 if not. The model is not called,
    because that costs money. `left_alone` names the servers that are not called now, because they kept
    failing."""

    async def choose_model() -> str:
        return pet.settings.chosen_model

    checks = Checks(
        record=await _check(pet.admin.health.revision),
        index=await _check(pet.admin.health.indexed),
        model=await _check(choose_model),
    )
    ready = set(checks.values()) == {"ok"}
    response.status_code = 200 if ready else 503
    left_alone = list(pet.admin.health.left_alone)
    return Readiness(status="ready" if ready else "not ready", checks=checks, left_alone=left_alone)


async def _check(check: Callable[[], Awaitable[object]]) -> State:
    """Return "ok" or "away". Anybody may call this, so only `hachi doctor` shows the reason."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await check()
    except (HachiError, TimeoutError):
        return "away"
    return "ok"


@router.get("/metrics", dependencies=[Depends(require_admin)], response_class=Response)
async def metrics(pet: Pet, measured: Measured) -> Response:
    """Metrics for Prometheus, over everybody's data and without content; for an admin's key."""
    statistics = pet.admin.statistics
    counts = await statistics.figures.totals(None) + Counter(await statistics.totals())
    counts["left alone"] = len(pet.admin.health.left_alone)
    counts["upkeep waiting"] = (await pet.admin.upkeep_waiting()).jobs
    exposition = measured.exposition(counts, await statistics.people())
    return Response(exposition, media_type="text/plain; version=0.0.4")
