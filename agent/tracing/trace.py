"""A trace as it is stored and read: a summary, and a tree of spans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from agent.types import Usage
from memory.spans import Span

Status = Literal["ok", "tool_error", "malformed", "error", "running", "killed"]
"""`error`: the turn failed. `tool_error`: a tool failed, and the turn was answered all the same. `malformed`:
the answer was not the JSON that was asked for. `running`: not ended yet. `killed`: its process died."""

TURN = "turn"
"""The kind of a turn's trace; other traces are named after the background job they belong to."""

SHORT = 8
"""Characters of an id that people are shown."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of the list of traces."""

    id: str
    """``trace_`` and 32 hexadecimal digits."""
    kind: str
    turn_id: str | None
    """Of a background job: the trace of its turn."""
    status: Status
    started_at: datetime
    took: float | None
    """Seconds; None if it did not end."""
    user: str | None
    place: str
    """Its key; empty in private."""
    conversation: str
    surface: str
    model: str
    said: str
    """The beginning of the message; empty if no content is recorded."""
    reply: str
    error: str | None
    calls: int
    tools: tuple[str, ...]
    """Names in the order of the calls, with a ``!`` after each that failed."""
    usage: Usage
    message_id: str | None = None
    process: str = ""

    @property
    def short(self) -> str:
        return self.id.removeprefix("trace_")[:SHORT]


@dataclass(frozen=True, slots=True)
class Trace:
    """All that was recorded."""

    summary: Summary
    root: Span
    made_by: Mapping[str, Any]
    """`versions`; the hash of every prompt by name (`prompts`); every tool's description and parameters by
    name (`tools`)."""
    redacted: bool
    """Whether something was taken out before the trace was written."""

    @property
    def id(self) -> str:
        return self.summary.id

    def spans(self, *kinds: str) -> Iterator[Span]:
        """All spans of these kinds, at any depth, in the order in which they began; no kind means all."""
        for span in descend(self.root):
            if not kinds or span.kind in kinds:
                yield span


@dataclass(frozen=True, slots=True)
class TraceWithJobs:
    """A trace, and those of the background jobs that followed it."""

    trace: Trace
    jobs: Sequence[Trace] = ()


def descend(span: Span) -> Iterator[Span]:
    yield span
    for inner in span.spans:
        yield from descend(inner)


def span_json(span: Span) -> dict[str, Any]:
    """Plain values, without what is empty."""
    whole = {field.name: getattr(span, field.name) for field in fields(Span)}
    whole["spans"] = [span_json(inner) for inner in span.spans]
    whole["at"] = round(span.at, 6)
    whole["took"] = None if span.took is None else round(span.took, 6)
    return {name: value for name, value in whole.items() if value not in (None, "", [], {}) or name == "kind"}


def span_from(value: Mapping[str, Any]) -> Span:
    return Span(
        kind=value["kind"],
        name=value.get("name", ""),
        at=value.get("at", 0.0),
        took=value.get("took"),
        error=value.get("error"),
        data=value.get("data", {}),
        spans=[span_from(inner) for inner in value.get("spans", ())],
    )


def read_data(span: Span, *path: str) -> Any:
    """The value at this path in a span's data; None if there is none. Data may come from any version."""
    value: Any = span.data
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list; none if it is no list."""
    items = value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, Mapping)]


def scored_ids(found: Any) -> list[tuple[str, float]]:
    """What a search found: (id, score), best first."""
    pairs = [pair for pair in found or () if isinstance(pair, Sequence) and len(pair) == 2]
    return [(str(id), float(score)) for id, score in pairs if isinstance(score, int | float)]


def call_usage(call: Span) -> Usage:
    counted = as_mapping(call.data.get("usage"))
    return Usage(*(int(counted.get(name) or 0) for name in ("input", "output", "cached")))


def tool_failed(span: Span) -> bool:
    return span.error is not None or span.data.get("ok") is False
