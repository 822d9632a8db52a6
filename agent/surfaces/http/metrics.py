"""Metrics for Prometheus. How long turns take is measured in this process; everything else is counted in the
database, for all processes, at each scrape."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from agent.companion import Companion
from agent.services.statistics import HOW_TO_NAME, NAMED, NAMELESS, KnownPerson

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
    "memory_extraction_count": ("Extractions from conversations.", itemgetter("extractions")),
    "memory_extraction_success": ("Extractions that were applied.", itemgetter("applied")),
    "memory_extraction_errors": (
        "Extractions that failed.",
        lambda counts: counts["extractions"] - counts["applied"],
    ),
    "memory_saved_count": (
        "Statements that were stored as memories.",
        lambda counts: counts["add"] + counts["replace"],
    ),
    "memory_retrieved_count": (
        "Memories and messages that searches found, and facts that prompts held.",
        itemgetter("retrieved"),
    ),
    "messages_total_count": ("Messages in the transcript, everybody's.", itemgetter("messages")),
    "work_waiting_count": ("Jobs in the queue.", itemgetter("work waiting")),
    "upkeep_waiting_count": (
        "Consolidations that wait: their person or place has no model calls left in this hour or day.",
        itemgetter("upkeep waiting"),
    ),
    "servers_left_alone_count": (
        "Servers that this process does not call now, because they kept failing.",
        itemgetter("left alone"),
    ),
    "work_given_up_count": ("Jobs that failed too often.", itemgetter("work given up")),
}
"""Name → help text and value, computed from the figures and the totals of `StatisticsService`."""
SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)


class Metrics:
    """What one process measures."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.turn_seconds = Histogram(
            "hachi_turn_seconds", "How long turns took.", buckets=SECONDS, registry=self._registry
        )
        self._told_nameless = False

    def note_person(self, pet: Companion, user: str | None) -> None:
        """Count a request of a service, and say once in the log where the first ones name nobody."""
        pet.admin.statistics.figures.count("", {NAMED if user else NAMELESS: 1})
        if user is None and not self._told_nameless:
            log.warning("a request names nobody, so nothing of it is remembered: %s", HOW_TO_NAME)
        self._told_nameless = True

    def exposition(self, counts: Counter[str], people: Iterable[KnownPerson]) -> bytes:
        """Return Prometheus' text format. All metrics but the histogram are gauges, because the library would
        append `_total` to the fixed names of counters."""
        registry = CollectorRegistry()
        held = Gauge(
            "memory_total_count", "Active memories that a person may read.", ["user"], registry=registry
        )
        for person in people:
            held.labels(person.user).set(person.memories)
        for name, (description, value) in GAUGES.items():
            Gauge(name, description, registry=registry).set(value(counts))
        return bytes(generate_latest(registry) + generate_latest(self._registry))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def metrics_of(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


Measured = Annotated[Metrics, Depends(metrics_of)]
