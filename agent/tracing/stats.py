"""Adds up the cost of turns and background jobs: calls, errors, times and tokens, by tool and by model."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from agent.errors import BadInput
from agent.tracing.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.tracing.trace import TURN, Trace, tool_failed, usage_of
from agent.types import Usage
from memory.errors import NotFound
from memory.process.spans import Span

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in any currency."""

    input: float
    output: float
    cached: float | None = None
    """The price of cached input; None means the price of other input."""

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / MILLION


@dataclass(slots=True)
class Tally:
    """How often an operation ran, and how long each run took."""

    calls: int = 0
    errors: int = 0
    seconds: list[float] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def add(self, span: Span, *, failed: bool) -> None:
        self.calls += 1
        self.errors += failed
        self.seconds += [] if span.took is None else [span.took]
        had, more = asdict(self.usage), asdict(usage_of([span]))
        self.usage = Usage(**{name: had[name] + more[name] for name in had})

    def json(self) -> dict[str, Any]:
        p50, p95 = (percentile(self.seconds, percent) for percent in (50, 95))
        return {"calls": self.calls, "errors": self.errors, "p50": p50, "p95": p95}

    def cost(self, price: Price | None) -> float | None:
        return price.of(self.usage) if price else None


@dataclass(slots=True)
class Stats:
    """Totals over many traces."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Statuses of turns."""
    turns: Tally = field(default_factory=Tally)
    work: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """Background jobs by kind."""
    tools: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    models: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))

    def add(self, trace: Trace) -> None:
        kind, status = trace.summary.kind, trace.summary.status
        whole = self.turns if kind == TURN else self.work[kind]
        whole.add(trace.root, failed=status in ("error", "killed"))
        self.statuses.update([status] if kind == TURN else [])
        for span in trace.spans("tool"):
            self.tools[span.name].add(span, failed=tool_failed(span))
        for span in trace.spans("call"):
            self.models[span.name].add(span, failed=span.error is not None)

    def json(self, prices: Mapping[str, Price]) -> dict[str, Any]:
        return {
            "turns": self.turns.json() | {"statuses": dict(self.statuses.most_common())},
            "work": {name: tally.json() for name, tally in sorted(self.work.items())},
            "tools": {name: tally.json() for name, tally in _busiest(self.tools)},
            "models": {
                name: tally.json() | asdict(tally.usage) | {"cost": tally.cost(prices.get(name))}
                for name, tally in _busiest(self.models)
            },
        }


def _busiest(tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda pair: (-pair[1].calls, pair[0]))


def percentile(seconds: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that `percent` of them do not exceed; None if there are no values."""
    ordered = sorted(seconds)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


async def stats_of(traces: Traces, wanted: TraceFilter, now: datetime) -> Stats:
    """Read every matching trace as a whole. Skips traces that are deleted meanwhile or cannot be read."""
    found = Stats()
    async for summary in traces.each(wanted, now):
        try:
            found.add(await traces.get(summary.id, now))
        except (NotFound, BadInput):
            continue
    return found
