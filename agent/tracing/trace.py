"""A trace as it is kept and read: what it is about, and its tree of spans."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal

from memory.spans import Span

Status = Literal["ok", "tool_error", "malformed", "error", "running", "killed"]
"""How it ended. `error`: the turn failed. `tool_error`: a tool did, and it was answered all the same.
`malformed`: the answer was not the JSON that was asked for, and was read leniently. `running`: it has not
ended; `killed`: it never will."""

TURN = "turn"
"""The kind of trace that a turn leaves; the others bear the name of the work that was done after it."""

SHORT = 8
"""Characters of an id that people are shown."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the model's server counted them; 0 where it did not say."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """A trace in one line of a list."""

    id: str
    """``trace_`` and 32 hexadecimal digits."""
    kind: str
    turn_id: str | None
    """Of work afterwards: the turn that it belongs to."""
    status: Status
    started_at: datetime
    took: float | None
    """Seconds; None where it did not end."""
    user: str | None
    place: str
    """Its key; empty in private."""
    conversation: str
    surface: str
    model: str
    said: str
    """The beginning of what was said; empty where no content is kept."""
    reply: str
    error: str | None
    calls: int
    tools: tuple[str, ...]
    """Their names in the order they were called, with a ``!`` after one that failed."""
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
    """`versions`; by name the hash of every prompt (`prompts`), and every tool's description and parameters
    (`tools`)."""
    redacted: bool
    """Whether something was taken out before it was written."""

    @property
    def id(self) -> str:
        return self.summary.id

    def spans(self, *kinds: str) -> Iterator[Span]:
        """In the order in which they began, at whatever depth; all of them where no kind is named."""
        for span in descend(self.root):
            if not kinds or span.kind in kinds:
                yield span


def descend(span: Span) -> Iterator[Span]:
    yield span
    for inner in span.spans:
        yield from descend(inner)


def span_json(span: Span) -> dict[str, Any]:
    """As plain values, what is empty left out."""
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


LONGEST_TURN = timedelta(minutes=15)
"""What has not ended by then, and was not heard of since, never will."""
