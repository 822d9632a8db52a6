"""A stored trace: a summary and a tree of spans. Costs are by prices from the package genai-prices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Literal

from agent.types import Usage
from memory.audience import Place
from memory.process.spans import Span

Status = Literal["ok", "tool_error", "malformed", "stopped", "error", "running", "killed"]
"""`error`: the turn failed. `tool_error`: a tool failed, but the turn was answered. `malformed`: the answer
was not the requested JSON. `stopped`: somebody stopped it. `running`: the turn has not ended. `killed`: its
process died."""
Content = Literal["kept", "hidden", "forgotten"]
"""`hidden`: the trace shows a hidden row, so it is not shown. `forgotten`: its body is deleted."""

TURN = "turn"
"""The kind of a turn's trace; traces of background jobs have the job's name as kind."""
CALL = "tool_call"
"""The kind of the trace of a tool call by another agent."""
CHORE = "chore"
"""The kind of the trace of a client's own request, such as a title for a chat."""

SHORT = 8
"""The number of characters in a shortened id."""
MAX_COUNT = 2**31 - 1
"""The maximum of an integer column."""
FEW = 1_000
"""The number of tokens for which prices are looked up. Some models charge more for very long prompts."""


@dataclass(frozen=True, slots=True)
class Work:
    """A background job after a turn, and how it ended."""

    kind: str
    status: Status
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One row of the list of traces."""

    id: str
    """``trace_`` and 32 hexadecimal digits."""
    kind: str
    turn_id: str | None = None
    """The trace of the turn that a background job followed."""
    status: Status = "running"
    started_at: datetime
    took: float | None = None
    """The duration in seconds; None if it did not end."""
    first: float | None = None
    """Seconds until the person saw the first letter; None if the reply was not streamed."""
    retried: int = 0
    """The number of model calls that failed and were retried."""
    user: str | None
    name: str = ""
    """The user's current name, in a list; empty if they wrote nothing."""
    place: str = ""
    """The place's key; empty in private."""
    conversation: str = ""
    surface: str = ""
    model: str = ""
    said: str = ""
    """The beginning of the message; empty if content is not recorded."""
    reply: str = ""
    error: str | None = None
    calls: int = 0
    tools: tuple[str, ...] = ()
    """The names of the tools, in the order of the calls, with a ``!`` after each that failed."""
    usage: Usage = field(default_factory=Usage)
    message_id: str | None = None
    process: str = ""
    content: Content = "kept"
    work: tuple[Work, ...] = ()
    """The background jobs after a turn."""

    @property
    def trouble(self) -> list[str]:
        """Describe briefly what went wrong, besides the status."""
        told = [f"retried {self.retried}×"] if self.retried else []
        told += [f"background work {one.status}" for one in self.work if one.status not in ("ok", "running")]
        return list(dict.fromkeys(told))

    @property
    def cost(self) -> float | None:
        """Return the cost of a turn and its background jobs; None if a model's price is unknown."""
        return cost_of([(self.model, self.usage), *((one.model, one.usage) for one in self.work)])

    @property
    def short(self) -> str:
        return self.id.removeprefix("trace_")[:SHORT]


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole recorded trace."""

    summary: Summary
    root: Span
    made_by: Mapping[str, Any]
    """What produced the trace: `versions`, hashes of `prompts`, schemas of `tools`, `settings`."""
    redacted: bool
    """Whether something was redacted before the trace was written."""

    @property
    def id(self) -> str:
        return self.summary.id

    def spans(self, *kinds: str) -> Iterator[Span]:
        """Yield all spans of these kinds (by default all), at any depth, in the order in which they began."""
        return (span for span in descend(self.root) if not kinds or span.kind in kinds)


@dataclass(frozen=True, slots=True)
class TraceWithJobs:
    """A trace with the traces of the background jobs that followed it."""

    trace: Trace
    jobs: Sequence[Trace] = ()


def place_key(place: Place) -> str:
    """Return the key of a place in a summary."""
    return "" if place.private else place.key


def last_attempt(trace: Trace) -> Sequence[Span]:
    """Return the spans after the last refusal for length, after which the turn restarted with a shorter
    prompt."""
    spans = trace.root.spans
    again = [at for at, one in enumerate(spans, 1) if one.data.get("too_long")]
    return spans[max((at for at in again if at < len(spans)), default=0) :]


def descend(span: Span) -> Iterator[Span]:
    yield span
    for inner in span.spans:
        yield from descend(inner)


def span_json(span: Span) -> dict[str, Any]:
    """Return the span as plain values, without empty ones."""
    times = {"at": round(span.at, 6), "took": None if span.took is None else round(span.took, 6)}
    told = {"kind": span.kind, "name": span.name, **times, "error": span.error, "data": span.data}
    whole = told | {"spans": [span_json(inner) for inner in span.spans]}
    return {name: value for name, value in whole.items() if value not in (None, "", [], {})}


def span_from(value: Mapping[str, Any]) -> Span:
    """Parse the output of `span_json`. Raises TypeError for anything else."""
    return Span(**{**value, "spans": [span_from(inner) for inner in value.get("spans", ())]})


def read_data(span: Span, *path: str) -> Any:
    """Return the value at this path in a span's data; None if it does not exist."""
    value: Any = span.data
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list; none if the value is not a list."""
    items = value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, Mapping)]


def decisions_of(trace: Trace) -> list[Mapping[str, Any]]:
    """Return the decisions on memories in a trace, in order."""
    return [one for span in trace.spans("decision") for one in mappings(span.data.get("decisions"))]


def scored_ids(search: Span) -> list[tuple[str, float]]:
    """Return a search's results as (id, score), best first."""
    return [(str(id), float(score)) for id, score in search.data.get("found") or ()]


def shown_ids(search: Span) -> frozenset[str]:
    """Return the ids of the results that the model received; all results, if the trace does not say."""
    found = [id for id, _ in scored_ids(search)]
    return frozenset(found).intersection(search.data.get("given", found))


def usage_of(calls: Iterable[Span]) -> Usage:
    """Add up the tokens of these model calls. Values that are not numbers count as 0."""
    total = dict.fromkeys(("input", "output", "cached"), 0)
    for counted in (call.data.get("usage") or {} for call in calls):
        for name, number in counted.items():
            if name in total and isinstance(number, int):
                total[name] = min(total[name] + max(0, number), MAX_COUNT)
    return Usage(**total)


def retried(root: Span) -> int:
    """Return how many model calls of a turn failed and were retried."""
    return sum(bool(call.error) for call in [span for span in root.spans if span.kind == "call"][:-1])


def was_stopped(span: Span) -> bool:
    """Return whether somebody stopped the span's work, so that it may have ended anywhere."""
    return (span.error or "").startswith("CancelledError")


def tool_failed(span: Span) -> bool:
    return span.error is not None or span.data.get("ok") is False


def cost_of(parts: Iterable[tuple[str, Usage]]) -> float | None:
    """Return what these tokens of models cost; None if a price is unknown, or nothing was counted."""
    counted = [(_prices_of(model.rpartition("/")[2]), usage) for model, usage in parts if usage != Usage()]
    costs = [
        price[0] * max(0, usage.input - usage.cached) + price[1] * usage.output + price[2] * usage.cached
        for price, usage in counted
        if price
    ]
    return sum(costs) if costs and len(costs) == len(counted) else None


@cache
def _prices_of(model: str) -> tuple[float, ...] | None:
    """Return a model's prices for a token of input, of output, and of input from the server's cache."""
    from genai_prices import Usage as Counted  # imported here: it takes 60 ms, and most lists need no price
    from genai_prices import calc_price

    kinds = (
        {"input_tokens": FEW},
        {"output_tokens": FEW},
        {"input_tokens": FEW, "cache_read_tokens": FEW},
    )
    try:
        return tuple(float(calc_price(Counted(**kind), model).total_price) / FEW for kind in kinds)
    except LookupError:
        return None
