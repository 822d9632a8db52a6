"""Metrics for Prometheus. Decisions and extractions are counted from the events in the log since the process
started; totals are counted in the database at each scrape."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from agent.surfaces.http.openai_types import SEARCH_TOOLS, search_hits
from agent.types import Reply

GAUGES: Mapping[str, tuple[str, Callable[[Counter[str]], float]]] = {
    "memory_total_count": ("Active memories, everybody's.", itemgetter("memories")),
    "memory_replacement_rate": (
        "Of the decisions on new statements, the share that replaced an older one.",
        lambda counts: _share(counts["replace"], counts["decided"]),
    ),
    "memory_dedup_rate": (
        "Of the decisions on new statements, the share that was known already.",
        lambda counts: _share(counts["known"], counts["decided"]),
    ),
    "retrieval_hit_rate": (
        "Of the searches in memory, the share that found something.",
        lambda counts: _share(counts["hits"], counts["searches"]),
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
    "memory_retrieved_count": ("Memories and messages that searches found.", itemgetter("retrieved")),
    "messages_total_count": ("Messages in the transcript, everybody's.", itemgetter("messages")),
    "work_waiting_count": ("Jobs in the queue.", itemgetter("work waiting")),
    "work_given_up_count": ("Jobs that failed too often.", itemgetter("work given up")),
}
"""Name → help text and value, computed from this process's counts and the database totals."""
SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
LOGGERS = ("hachi.memory", "hachi.upkeep")


class Metrics:
    """The counts of one process."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._registry = CollectorRegistry()
        self.turn_seconds = Histogram(
            "hachi_turn_seconds", "How long turns took.", buckets=SECONDS, registry=self._registry
        )

    def count_turn(self, reply: Reply) -> None:
        for call in reply.tools:
            if call.name in SEARCH_TOOLS:
                self.count_search(len(search_hits(call)))

    def count_search(self, found: int) -> None:
        self.counts.update(searches=1, hits=min(found, 1), retrieved=found)

    def count_event(self, line: str) -> None:
        """Count a log line if it is an event."""
        if not line.startswith('{"event"'):
            return
        event = json.loads(line)
        for decision in event.get("decisions", ()):
            action = decision.get("action")
            known = action == "merge" or (action == "ignore" and "target_id" in decision)
            self.counts.update({str(action): 1, "decided": 1, "known": int(known)})
        if event["event"] == "memory_extraction":
            self.counts.update(extractions=1, applied=int(bool(event.get("ok"))))

    def exposition(self, totals: Mapping[str, int]) -> bytes:
        """Return Prometheus' text format; `totals` are those of the statistics service. All are gauges,
        because the library would append `_total` to the names of counters."""
        registry, counts = CollectorRegistry(), self.counts + Counter(totals)
        for name, (description, value) in GAUGES.items():
            Gauge(name, description, registry=registry).set(value(counts))
        return bytes(generate_latest(registry) + generate_latest(self._registry))

    @contextmanager
    def counting_events(self) -> Iterator[None]:
        """Count the log's events in the block. Lines below the log's level are counted and not written."""
        level = logging.getLogger("hachi").getEffectiveLevel()

        def count(record: logging.LogRecord) -> bool:
            self.count_event(record.getMessage())
            return record.levelno >= level

        with ExitStack() as undo:
            for logger in map(logging.getLogger, LOGGERS):
                undo.callback(logger.setLevel, logger.level)
                undo.callback(logger.removeFilter, count)
                logger.setLevel(min(logging.INFO, level))
                logger.addFilter(count)
            yield


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


Measured = Annotated[Metrics, Depends(_metrics)]
