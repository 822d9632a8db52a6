"""Answer health checks, and serve metrics to Prometheus.

How long turns take is measured in this process. Everything else is counted in the database, for all
processes, at each scrape.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from operator import itemgetter
from typing import Literal

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from starlette.responses import Response
from typing_extensions import TypedDict

from agent.companion import Companion
from agent.errors import HachiError
from agent.services.statistics import HOW_TO_NAME, NAMED, NAMELESS
from agent.surfaces.http.authentication import Pet, require_admin
from agent.surfaces.http.routes import api_routes

log = logging.getLogger("hachi.http")

GAUGES: Mapping[str, tuple[str, Callable[[Counter[str]], float]]] = {
    "memory_replacement_rate": (
        "Of the decisions on new statements, the share that replaced an older one.",
        lambda counts: _share(counts["replace"], counts["decided"]),
    ),
    "memory_dedup_rate": (
        "Of the decisions on new statements, the share that was known already.",
        lambda counts: _share(counts["known"], counts["decided"]),
    ),
    "retrieval_hit_rate": (
        "Of the searches in memory that a model made, the share that found something.",
        lambda counts: _share(counts["turn searches that found"], counts["turn searches"]),
    ),
    "memory_extraction_count": ("Consolidations of conversations by a model.", itemgetter("consolidations")),
    "memory_extraction_success": ("Consolidations whose answer was whole.", itemgetter("applied")),
    "memory_extraction_errors": (
        "Consolidations that failed.",
        lambda counts: counts["consolidations"] - counts["applied"],
    ),
    "memory_saved_count": (
        "Statements that were stored as memories.",
        lambda counts: counts["add"] + counts["replace"],
    ),
    "memory_retrieved_count": (
        "Memories and messages that searches found, and facts that prompts held.",
        itemgetter("retrieved"),
    ),
    "memory_total_count": ("Memories, with those that were replaced.", itemgetter("memories")),
    "messages_total_count": ("Messages in the transcript, everybody's.", itemgetter("messages")),
    "work_waiting_count": ("Jobs in the queue.", itemgetter("work waiting")),
    "upkeep_waiting_count": (
        "Consolidations that wait: their person or place has no model calls left today.",
        itemgetter("consolidations waiting"),
    ),
    "servers_left_alone_count": (
        "Servers that this process does not call now, because they kept failing.",
        itemgetter("left alone"),
    ),
    "fallback_calls_count": (
        "Calls that the second model answered in this process.",
        itemgetter("fallback calls"),
    ),
    "work_given_up_count": ("Jobs that failed too often.", itemgetter("work given up")),
}
"""Name → help text and value, computed from the figures and the totals of `StatisticsService`."""
BUCKETS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)


class Metrics:
    """Measurements of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.turn_seconds = Histogram(
            "hachi_turn_seconds", "How long turns took.", buckets=BUCKETS, registry=self._registry
        )
        self._told_nameless = False

    def note_person(self, pet: Companion, user: str | None) -> None:
        """Count a request of a service. Log one warning if none of the first requests names a user."""
        pet.admin.statistics.figures.count("", {NAMED if user else NAMELESS: 1})
        if user is None and not self._told_nameless:
            log.warning("a request names nobody, so nothing of it is remembered: %s", HOW_TO_NAME)
        self._told_nameless = True

    def exposition(self, counts: Counter[str]) -> bytes:
        """Return the metrics in Prometheus' text format. All but the histogram are gauges, because the
        library would append `_total` to counters, whose names are fixed."""
        registry = CollectorRegistry()
        for name, (description, value) in GAUGES.items():
            Gauge(name, description, registry=registry).set(value(counts))
        return bytes(generate_latest(registry) + generate_latest(self._registry))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def metrics_of(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


# The routes.

CHECK_TIMEOUT = 5.0
"""Seconds until a check times out."""

router = api_routes(tag="health", any_query=True)

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
    """Return 200 while the process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"model": Readiness}})
async def readyz(pet: Pet, response: Response) -> Readiness:
    """Return 200 if the database and the index can be reached and a model is configured, else 503. The model
    is not called, because that costs money. `left_alone` names the servers that are not called at present,
    because they kept failing."""

    async def choose_model() -> str:
        return pet.settings.chosen_model

    checks = Checks(
        record=await _check(pet.admin.health.revision),
        index=await _check(pet.admin.health.indexed),
        model=await _check(choose_model),
    )
    ready = set(checks.values()) == {"ok"}
    response.status_code = 200 if ready else 503
    left_alone = list(pet.admin.health.unavailable)
    return Readiness(status="ready" if ready else "not ready", checks=checks, left_alone=left_alone)


async def _check(check: Callable[[], Awaitable[object]]) -> State:
    """Return "ok" or "away". Anybody may call this route, so only `hachi doctor` shows the reason."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            await check()
    except (HachiError, TimeoutError):
        return "away"
    return "ok"


@router.get("/metrics", dependencies=[Depends(require_admin)], response_class=Response)
async def metrics(pet: Pet, request: Request) -> Response:
    """Return metrics for Prometheus about everybody's data, without content or names. Needs an admin's
    key."""
    statistics = pet.admin.statistics
    counts = await statistics.figures.totals(None) + await statistics.stored()
    counts["left alone"] = len(pet.admin.health.unavailable)
    counts["fallback calls"] = pet.components.breakers["fallback model"].answered
    counts["consolidations waiting"] = (await pet.admin.pending_consolidations()).jobs
    exposition = metrics_of(request).exposition(counts)
    return Response(exposition, media_type="text/plain; version=0.0.4")
