"""Adds up turns and the jobs after them, by day, person, model, surface and tool, and the cost of jobs by
payer.

One statement groups rows with equal fields. Durations come as lists, since a percentile needs each of them.
So a hundred thousand turns take less than a second.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Text, cast, func, select

from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.rows import conditions
from agent.tracing.store.traces import Traces
from agent.tracing.trace import CALL, TURN, cost_of
from agent.types import Usage
from memory.sql.tables import traces as table

SEARCHES = " search_memories "
TOKENS = ("input", "output", "cached")


COUNTED = ("turns", "errors", "searched", "upkeep", "upkeep_errors", "upkeep_tokens")
"""The counts: turns, failed ones, and ones that searched in memory; jobs after turns, failed ones, and their
tokens, which are also in the model's tokens."""


@dataclass(slots=True)
class Tally:
    """The counts of a group of turns and the jobs after them."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """Seconds to the first letter, for streamed turns."""
    usage: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tokens by model and kind: input, output, cached."""

    def add(self, row: Any, seconds: Sequence[float], first: Sequence[float]) -> None:
        self.usage.update({(row.model, kind): getattr(row, kind) for kind in TOKENS})
        number = row.number
        if row.kind == TURN:
            self.counts["turns"] += number
            self.counts["errors"] += number * (row.status == "error")
            self.counts["searched"] += number * (SEARCHES in row.tools)
            self.seconds += seconds
            self.first += first
        elif row.kind != CALL:
            self.counts["upkeep"] += number
            self.counts["upkeep_errors"] += number * (row.status in ("error", "malformed"))
            self.counts["upkeep_tokens"] += row.input + row.output

    def json(self) -> dict[str, Any]:
        models = dict.fromkeys(model for model, _ in self.usage)
        by_model = {model: Usage(*(self.usage[model, kind] for kind in TOKENS)) for model in models}
        times = {"p": sorted(self.seconds), "first_p": sorted(self.first)}
        return {
            **{name: self.counts[name] for name in COUNTED},
            **{f"{of}{n}": percentile(ordered, n) for of, ordered in times.items() for n in (50, 95)},
            **{kind: sum(getattr(usage, kind) for usage in by_model.values()) for kind in TOKENS},
            "cost": cost_of(by_model.items()),
        }


GROUPS = ("days", "people", "models", "surfaces")
"""The groupings. In `people`, a job counts for its payer, a person or a place."""


def _shown(tallies: Mapping[str, Tally], *, by_size: bool) -> dict[str, Any]:
    named = [(name, tally.json()) for name, tally in sorted(tallies.items())]
    return dict(sorted(named, key=lambda one: by_size and (-one[1]["turns"], -one[1]["upkeep"])))


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that is not exceeded by `percent` of the values; None if there are none."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def _numbers(listed: str | None) -> list[float]:
    return [*map(float, listed.split(","))] if listed else []


def _added_up(wanted: TraceFilter) -> Select[Any]:
    """Return the statement: one row for all traces with the same day (UTC), person, model, surface, status
    and tools."""
    c = table.c
    day = func.substr(cast(c.started_at, Text), 1, len("2026-11-24")).label("day")
    common = (c.kind, c.status, c.user_id, c.model, c.surface, c.tools)
    tokens = [func.sum(table.c[f"{kind}_tokens"]).label(kind) for kind in TOKENS]
    lists = [
        func.aggregate_strings(cast(times, Text), ",").label(name)
        for name, times in (("seconds", c.took), ("first", c.first))
    ]
    counted = select(day, *common, func.count().label("number"), *tokens, *lists)
    return counted.where(*conditions(wanted)).group_by("day", *common)


async def stats_of(traces: Traces, wanted: TraceFilter) -> dict[str, Any]:
    """Add up the matching traces: in `total`, by each of `GROUPS`, and the calls and errors of `tools`."""
    total, statuses = Tally(), Counter[str]()
    groups: dict[str, dict[str, Tally]] = {name: defaultdict(Tally) for name in GROUPS}
    tools: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in await traces.database.rows(_added_up(wanted)):
        of = dict(zip(GROUPS, (row.day, row.user_id, row.model, row.surface), strict=True))
        numbers = _numbers(row.seconds), _numbers(row.first)
        known = {name: key or "-" for name, key in of.items() if key or row.kind == TURN}
        for tally in (total, *(groups[name][key] for name, key in known.items())):
            tally.add(row, *numbers)
        for tool in row.tools.split():
            tools[tool.removesuffix("!")][tool.endswith("!")] += row.number
        statuses[row.status] += row.number * (row.kind == TURN)
    return {
        "total": total.json() | {"statuses": dict((+statuses).most_common())},
        **{name: _shown(tallies, by_size=name != "days") for name, tallies in groups.items()},
        "tools": {
            name: {"calls": count.total(), "errors": count[True]} for name, count in sorted(tools.items())
        },
    }
