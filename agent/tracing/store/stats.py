"""Adds up turns and the work after them: by day, person, model, surface and tool; what upkeep cost whom.

One statement adds up what has all in common; the lengths of time come as lists, since a percentile needs
each. So a hundred thousand take less than a second.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Text, cast, func, select

from agent.tracing.prices import Prices
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.rows import conditions
from agent.tracing.store.traces import Traces
from agent.tracing.trace import CALL, TURN
from agent.types import Usage
from memory.sql.tables import traces as table

SEARCHES = " search_memories "
TOKENS = ("input", "output", "cached")


@dataclass(slots=True)
class Tally:
    """Turns of one kind, and the work after them."""

    turns: int = 0
    errors: int = 0
    seconds: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    """Seconds to the first letter, of those that were streamed."""
    searched: int = 0
    """Turns that searched in memory."""
    usage: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tokens by model and kind: input, output, cached."""
    upkeep: int = 0
    """Jobs after turns …"""
    upkeep_errors: int = 0
    upkeep_tokens: int = 0
    """… and the tokens of these jobs, which are in `usage` too."""

    def add(self, row: Any, seconds: Sequence[float], first: Sequence[float]) -> None:
        for kind in TOKENS:
            self.usage[row.model, kind] += getattr(row, kind)
        if row.kind == CALL:
            return
        if row.kind != TURN:
            self.upkeep += row.number
            self.upkeep_errors += row.number * (row.status in ("error", "malformed"))
            self.upkeep_tokens += row.input + row.output
            return
        self.turns += row.number
        self.errors += row.number * (row.status == "error")
        self.searched += row.number * (SEARCHES in row.tools)
        self.seconds += seconds
        self.first += first

    def json(self, prices: Prices) -> dict[str, Any]:
        self.seconds.sort()
        self.first.sort()
        models = dict.fromkeys(model for model, _ in self.usage)
        by_model = [(model, Usage(*(self.usage[model, kind] for kind in TOKENS))) for model in models]
        return {
            **{name: getattr(self, name) for name in ("turns", "errors", "searched")},
            **{f"p{percent}": percentile(self.seconds, percent) for percent in (50, 95)},
            **{f"first_p{percent}": percentile(self.first, percent) for percent in (50, 95)},
            **{kind: sum(getattr(usage, kind) for _, usage in by_model) for kind in TOKENS},
            **{name: getattr(self, name) for name in ("upkeep", "upkeep_errors", "upkeep_tokens")},
            "cost": prices.total((model, usage) for model, usage in by_model if usage != Usage()),
        }


GROUPS = ("days", "people", "models", "surfaces")
"""Work counts for its payer, a person or a place."""


@dataclass(frozen=True, slots=True)
class Stats:
    total: Tally
    groups: Mapping[str, Mapping[str, Tally]]
    statuses: Mapping[str, int]
    """Of turns."""
    tools: Mapping[str, tuple[int, int]]
    """Calls and errors by name."""

    def json(self, prices: Prices) -> dict[str, Any]:
        groups = {
            name: {key: tally.json(prices) for key, tally in _ordered(name, tallies)}
            for name, tallies in self.groups.items()
        }
        tools = {name: {"calls": calls, "errors": errors} for name, (calls, errors) in self.tools.items()}
        total = self.total.json(prices) | {"statuses": self.statuses}
        return {"total": total, **groups, "tools": tools}


def _ordered(name: str, tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    if name == "days":
        return sorted(tallies.items())
    return sorted(tallies.items(), key=lambda pair: (-pair[1].turns, -pair[1].upkeep, pair[0]))


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that `percent` of them do not exceed; None if there are no values."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def _numbers(listed: str | None) -> list[float]:
    return [*map(float, listed.split(","))] if listed else []


def _added_up(wanted: TraceFilter) -> Select[Any]:
    """Return the statement. A row is for the traces that share a day of UTC, a person and so on."""
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


async def stats_of(traces: Traces, wanted: TraceFilter) -> Stats:
    """Add up the matching traces."""
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
    called = {name: (count.total(), count[True]) for name, count in sorted(tools.items())}
    return Stats(total, groups, dict((+statuses).most_common()), called)
