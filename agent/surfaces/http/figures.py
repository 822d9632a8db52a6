"""The figures for Prometheus. What is decided about memories and found by looking back is counted from the
lines that the log gets of it (see docs/operating.md), as long as this process runs; how much there is, is
counted in the record when it is asked for."""

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from agent.surfaces.http.completions import RECALLING, recalled
from agent.types import Reply

NAMES: Mapping[str, str] = {
    "memory_total_count": "Memories that hold now, everybody's.",
    "memory_replacement_rate": "Of the decisions on new statements, the share that replaced an older one.",
    "memory_dedup_rate": "Of the decisions on new statements, the share that was known already.",
    "retrieval_hit_rate": "Of the searches in memory, the share that found something.",
    "memory_extraction_count": "Looks back at conversations.",
    "memory_extraction_success": "Those that were applied.",
    "memory_extraction_errors": "Those that failed.",
    "memory_saved_count": "Statements that were stored as memories.",
    "memory_retrieved_count": "Memories and messages that searches brought.",
    "messages_total_count": "Messages in the transcript, everybody's.",
    "work_waiting_count": "Pieces of work in the queue.",
    "work_given_up_count": "Pieces of work that failed too often.",
}

SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
LOGGERS = ("hachi.memory", "hachi.upkeep")


class Figures:
    """Of one process."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._registry = CollectorRegistry()
        self.turn_seconds = Histogram(
            "hachi_turn_seconds", "How long turns took.", buckets=SECONDS, registry=self._registry
        )

    def turn(self, reply: Reply) -> None:
        """A turn was taken."""
        for call in reply.tools:
            if call.name in RECALLING:
                self.searched(sum(1 for _ in recalled(call)))

    def searched(self, found: int) -> None:
        """Memory was searched, and so many things were found."""
        self.counted.update(searches=1, hits=min(found, 1), retrieved=found)

    def noted(self, line: str) -> None:
        """A line of the log; most are none of ours."""
        if not line.startswith('{"event"'):
            return
        event = json.loads(line)
        for decision in event.get("decisions", ()):
            action = decision.get("action")
            known = action == "merge" or (action == "ignore" and "target_id" in decision)
            self.counted.update({str(action): 1, "decided": 1, "known": int(known)})
        if event["event"] == "memory_extraction":
            self.counted.update(looked_back=1, applied=int(bool(event.get("ok"))))

    def values(self, kept: Mapping[str, int]) -> dict[str, float]:
        """By name; `kept` is what `agent.surfaces.cli.figures.counts` found in the record."""
        counted = self.counted
        return {
            "memory_total_count": kept["memories"],
            "memory_replacement_rate": _share(counted["replace"], counted["decided"]),
            "memory_dedup_rate": _share(counted["known"], counted["decided"]),
            "retrieval_hit_rate": _share(counted["hits"], counted["searches"]),
            "memory_extraction_count": counted["looked_back"],
            "memory_extraction_success": counted["applied"],
            "memory_extraction_errors": counted["looked_back"] - counted["applied"],
            "memory_saved_count": counted["add"] + counted["replace"],
            "memory_retrieved_count": counted["retrieved"],
            "messages_total_count": kept["messages"],
            "work_waiting_count": kept["work waiting"],
            "work_given_up_count": kept["work given up"],
        }

    def exposed(self, kept: Mapping[str, int]) -> bytes:
        """In the text form that Prometheus reads. The names are fixed, so none of them gets the ending that
        the library gives to counters."""
        once = CollectorRegistry()
        once.register(_Once(self.values(kept)))
        return bytes(generate_latest(once) + generate_latest(self._registry))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count from the log for as long as the block lasts, whatever is written of it: a log that leaves out
        what is remembered still leaves it out."""
        ours, counts = logging.getLogger("hachi"), _Counts(self)
        with ExitStack() as after:
            for logger in map(logging.getLogger, LOGGERS):
                after.callback(logger.setLevel, logger.level)
                after.callback(logger.removeFilter, counts)
                counts.written_from = ours.getEffectiveLevel()
                logger.setLevel(min(logging.INFO, counts.written_from))
                logger.addFilter(counts)
            yield


class _Counts(logging.Filter):
    def __init__(self, figures: Figures) -> None:
        super().__init__()
        self._figures = figures
        self.written_from = logging.INFO

    def filter(self, record: logging.LogRecord) -> bool:
        self._figures.noted(record.getMessage())
        return record.levelno >= self.written_from


class _Once:
    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def collect(self) -> Iterator[Metric]:
        for name, value in self._values.items():
            metric = Metric(name, NAMES[name], "gauge")
            metric.add_sample(name, {}, value)
            yield metric


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
