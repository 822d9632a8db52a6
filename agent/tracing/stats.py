"""What turns and the work after them cost: by tool and by model, how often, how long, how many tokens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.errors import BadInput
from agent.tracing.render.overview import usage_of, went_wrong
from agent.tracing.store import Traces, Wanted
from agent.tracing.trace import TURN, Trace, Usage
from memory.errors import NotFound
from memory.spans import Span

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens, in whatever money."""

    input: float
    output: float
    cached: float | None = None
    """Of input that the server had cached; as other input where nobody says."""

    def of(self, usage: Usage) -> float:
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / MILLION


@dataclass(slots=True)
class Taken:
    """How often something was done, and how long each took."""

    calls: int = 0
    errors: int = 0
    seconds: list[float] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def add(self, span: Span, *, wrong: bool, usage: Usage | None = None) -> None:
        self.calls += 1
        self.errors += wrong
        if span.took is not None:
            self.seconds.append(span.took)
        if usage is not None:
            had = self.usage
            self.usage = Usage(had.input + usage.input, had.output + usage.output, had.cached + usage.cached)

    def json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "errors": self.errors,
            "p50": percentile(self.seconds, 50),
            "p95": percentile(self.seconds, 95),
        }


@dataclass(slots=True)
class Figures:
    """Summed up trace by trace."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Of turns."""
    turns: Taken = field(default_factory=Taken)
    work: dict[str, Taken] = field(default_factory=dict)
    """What was done after turns, by its kind."""
    tools: dict[str, Taken] = field(default_factory=dict)
    models: dict[str, Taken] = field(default_factory=dict)

    def add(self, trace: Trace) -> None:
        failed = trace.summary.status in ("error", "killed")
        if trace.summary.kind == TURN:
            self.statuses[trace.summary.status] += 1
            self.turns.add(trace.root, wrong=failed)
        else:
            self.work.setdefault(trace.summary.kind, Taken()).add(trace.root, wrong=failed)
        for span in trace.spans("tool"):
            self.tools.setdefault(span.name, Taken()).add(span, wrong=went_wrong(span))
        for span in trace.spans("call"):
            taken = self.models.setdefault(span.name, Taken())
            taken.add(span, wrong=span.error is not None, usage=usage_of(span))

    def json(self, prices: Mapping[str, Price]) -> dict[str, Any]:
        return {
            "turns": self.turns.json() | {"statuses": dict(self.statuses.most_common())},
            "work": {name: taken.json() for name, taken in sorted(self.work.items())},
            "tools": {name: taken.json() for name, taken in _busiest(self.tools)},
            "models": {
                name: taken.json()
                | {
                    "input": taken.usage.input,
                    "output": taken.usage.output,
                    "cached": taken.usage.cached,
                    "cost": prices[name].of(taken.usage) if name in prices else None,
                }
                for name, taken in _busiest(self.models)
            },
        }


def _busiest(taken: Mapping[str, Taken]) -> list[tuple[str, Taken]]:
    return sorted(taken.items(), key=lambda pair: (-pair[1].calls, pair[0]))


def percentile(seconds: Sequence[float], percent: int) -> float | None:
    """The least of them that so many percent do not exceed; None where there is none."""
    ordered = sorted(seconds)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


async def figures(traces: Traces, wanted: Wanted, now: datetime) -> Figures:
    """Reads every trace that is wanted, whole. What goes away meanwhile, or cannot be read, is left out."""
    found = Figures()
    async for summary in traces.each(wanted, now):
        try:
            found.add(await traces.get(summary.id, now))
        except (NotFound, BadInput):
            continue
    return found
