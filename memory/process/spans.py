"""Record what happens in a turn, as a tree of spans.

`recording` opens the tree; code inside adds spans at its place. Outside a recording `span` stores nothing.
`agent/tracing` stores and shows the trees.
"""

import time
import traceback
from asyncio import CancelledError
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self
from uuid import uuid4

from pydantic import TypeAdapter

MARK = "~"
"""The prefix of the id of a candidate that a search left out: the trace does not rest on it."""


@dataclass(slots=True)
class Span:
    """One step of a turn or job. It changes while it is recorded."""

    kind: str
    """turn, scene (the context for the model), call, wait (before another attempt), tool, search, documents,
    decision, answer; of a background job, the kind of job, exchange (a consolidation)."""
    name: str = ""
    at: float = 0.0
    """Start, in seconds from the beginning of the recording."""
    took: float | None = None
    """Duration in seconds; None while the span runs, and if it was cut off."""
    error: str | None = None
    """The exception that ended the span, in one line."""
    data: dict[str, Any] = field(default_factory=dict)
    spans: list["Span"] = field(default_factory=list)


@dataclass(eq=False)
class Recording:
    """A tree of spans that is being recorded."""

    id: str
    root: Span
    open: bool = True
    changes: int = 0
    """The number of times that a span has begun or ended."""
    rows: set[str] = field(default_factory=set)
    """Ids of rows whose text is in the recording, in addition to ids in the text itself."""
    wrote: bool = False
    """Whether a transaction that writes was committed in it."""
    _began: float = field(default_factory=time.perf_counter)

    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    def snapshot(self) -> "Recording":
        """Return a copy that does not change while the recording continues."""
        return Recording(self.id, _copied(self.root), rows=set(self.rows))


def _copied(span: Span) -> Span:
    return replace(span, data=dict(span.data), spans=[_copied(one) for one in span.spans])


_current: ContextVar[tuple[Recording, Span] | None] = ContextVar("hachi_span", default=None)


def _open_here() -> tuple[Recording, Span] | None:
    """Return the current recording and the innermost span; None outside a recording or after it has ended."""
    around = _current.get()
    return around if around is not None and around[0].open else None


@contextmanager
def recording(recorded: Recording) -> Iterator[Recording]:
    """Record all spans inside the block. Tasks that outlive the block are no longer recorded."""
    token = _current.set((recorded, recorded.root))
    try:
        with _timed(recorded, recorded.root):
            yield recorded
    finally:
        recorded.open = False
        _current.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Exclude the spans inside the block from the current recording."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def span(kind: str, name: str = "", *, nesting: bool = True, **data: Any) -> Iterator[Span | None]:
    """Record one span around the block; yields None outside a recording. Without `nesting`, spans inside
    become siblings, as a generator needs: its caller runs meanwhile."""
    around = _open_here()
    if around is None:
        yield None
        return
    recorded, parent = around
    here = Span(kind, name, recorded.elapsed(), data=data)
    parent.spans.append(here)
    token = _current.set((recorded, here)) if nesting else None
    try:
        with _timed(recorded, here):
            yield here
    finally:
        if token is not None:
            _current.reset(token)


@contextmanager
def _timed(recorded: Recording, here: Span) -> Iterator[None]:
    recorded.changes += 1
    try:
        yield
    except BaseException as error:
        here.error = here.error or describe_error(error)
        raise
    finally:
        here.took = recorded.elapsed() - here.at
        recorded.changes += 1


def waited_after(kind: str) -> None:
    """Record the wait since the last span here, if that is of this kind and failed."""
    if around := _open_here():
        recorded, parent = around
        last = parent.spans[-1] if parent.spans else None
        if last and last.kind == kind and last.error and last.took is not None:
            ended = last.at + last.took
            parent.spans.append(Span("wait", "before another attempt", ended, recorded.elapsed() - ended))


def first_letter() -> None:
    """Store on the root, once, the time until the person saw the first letter."""
    if around := _open_here():
        around[0].root.data.setdefault("first", around[0].elapsed())


def note(**data: Any) -> None:
    """Add data to the innermost span, if a recording is open."""
    if around := _open_here():
        around[1].data.update(data)


def note_rows(ids: Iterable[str]) -> None:
    """Add rows whose text is in the current recording without their whole ids."""
    if around := _open_here():
        around[0].rows.update(ids)


def note_write() -> None:
    """Store in the open recording, if any, that a transaction wrote."""
    if around := _open_here():
        around[0].wrote = True


def is_recorded() -> bool:
    """Return whether a recording is open here."""
    return _open_here() is not None


def new_id() -> str:
    """Return a UUID."""
    return str(uuid4())


def describe_error(error: BaseException) -> str:
    try:
        text = str(error) or ("it was stopped" if isinstance(error, CancelledError) else "")
    except Exception as broken:  # the exception's own __str__ failed
        text = f"({type(broken).__name__})"
    return " ".join(f"{type(error).__name__}: {text}".split()).removesuffix(":")


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class Traced:
    """A dataclass that a trace stores as JSON without its defaults, and a replay reads back."""

    __slots__ = ()

    def to_trace(self) -> dict[str, Any]:
        """Return it as JSON values."""
        kind: Any = type(self)
        values: dict[str, Any] = _form(kind).dump_python(self, mode="json", exclude_defaults=True)
        return values

    @classmethod
    def from_trace(cls, data: Any) -> Self:
        """Return the value of `to_trace`. Raises pydantic.ValidationError for anything else."""
        kind: Any = cls
        value: Self = _form(kind).validate_python(data)
        return value


@cache
def _form(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
