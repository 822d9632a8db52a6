"""What happens in a turn, as a tree of spans, for whoever looks at it afterwards.

`recording` opens the tree; whatever runs inside it opens spans of its own where it stands. Where nobody
records, `span` costs a look at a context variable and nothing is kept. What becomes of the tree is decided
above: see `agent/tracing`.
"""

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from uuid import uuid4


@dataclass(slots=True)
class Span:
    """One thing that happened. It grows while it is recorded."""

    kind: str
    """turn, scene, call, tool, search, documents, decision, answer; of work afterwards, the kind of work."""
    name: str = ""
    at: float = 0.0
    """Seconds from the beginning of the recording."""
    took: float | None = None
    """Seconds; None while it goes on, and where it was cut off."""
    error: str | None = None
    """What it ended with, in one line."""
    data: dict[str, Any] = field(default_factory=dict)
    spans: list["Span"] = field(default_factory=list)


class Recording:
    """One tree, while it grows."""

    def __init__(self, id: str, root: Span) -> None:
        self.id = id
        self.root = root
        self.open = True
        self.changes = 0
        """Grows with every span that opens or ends."""
        self._began = time.perf_counter()
        self._ids = 0

    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    def as_it_is(self) -> "Recording":
        """A copy that does not change while this one goes on."""
        copy = Recording(self.id, _copied(self.root))
        copy.open = self.open
        return copy

    def next_id(self) -> str:
        self._ids += 1
        made = blake2b(f"{self.id} {self._ids}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return (
            f"{made[:8]}-{made[8:12]}-8{made[13:16]}-a{made[17:20]}-{made[20:]}"  # a UUID of one's own making
        )


def _copied(span: Span) -> Span:
    inner = [_copied(one) for one in span.spans]
    return Span(span.kind, span.name, span.at, span.took, span.error, dict(span.data), inner)


_here: ContextVar[tuple[Recording, Span] | None] = ContextVar("hachi_span", default=None)


@contextmanager
def recording(recorded: Recording) -> Iterator[Recording]:
    """Everything inside the block is recorded; what it leaves running is not, once the block has ended."""
    token = _here.set((recorded, recorded.root))
    try:
        with _timed(recorded, recorded.root):
            yield recorded
    finally:
        recorded.open = False
        _here.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Nothing inside the block belongs to what is being recorded around it."""
    token = _here.set(None)
    try:
        yield
    finally:
        _here.reset(token)


@contextmanager
def span(kind: str, name: str = "", **data: Any) -> Iterator[Span | None]:
    """One span around the block; None where nobody records. What the block raises is noted, and goes on."""
    around = _here.get()
    if around is None or not around[0].open:
        yield None
        return
    recorded, parent = around
    here = Span(kind, name, recorded.elapsed(), data=data)
    parent.spans.append(here)
    token = _here.set((recorded, here))
    try:
        with _timed(recorded, here):
            yield here
    finally:
        _here.reset(token)


@contextmanager
def _timed(recorded: Recording, here: Span) -> Iterator[None]:
    recorded.changes += 1
    try:
        yield
    except BaseException as error:
        here.error = here.error or in_one_line(error)
        raise
    finally:
        here.took = recorded.elapsed() - here.at
        recorded.changes += 1


class Begun:
    """A span that is ended by hand: for where a block cannot be, as in what yields to others meanwhile. What
    happens between is not below it."""

    def __init__(self, recorded: Recording, span: Span) -> None:
        self._recorded = recorded
        self.span = span

    def elapsed(self) -> float:
        """Seconds since it began."""
        return self._recorded.elapsed() - self.span.at

    def end(self, error: BaseException | None = None) -> None:
        if error is not None:
            self.span.error = in_one_line(error)
        self.span.took = self._recorded.elapsed() - self.span.at
        self._recorded.changes += 1


def begin(kind: str, name: str = "", **data: Any) -> Begun | None:
    """A span that begins here and ends with `end`; None where nobody records."""
    around = _here.get()
    if around is None or not around[0].open:
        return None
    recorded, parent = around
    here = Span(kind, name, recorded.elapsed(), data=data)
    parent.spans.append(here)
    recorded.changes += 1
    return Begun(recorded, here)


def note(**data: Any) -> None:
    """Add to the span that is open, where there is one."""
    around = _here.get()
    if around is not None and around[0].open:
        around[1].data.update(data)


def recorded_id() -> str | None:
    """The id of what is being recorded."""
    around = _here.get()
    return around[0].id if around is not None else None


def new_id() -> str:
    """An id for something new. In a recording it follows from the recording's own id, so that the same turn
    taken again, for a replay, makes the same ids."""
    around = _here.get()
    if around is not None and around[0].open:
        return around[0].next_id()
    return str(uuid4())


def in_one_line(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception as broken:  # of somebody's own error: looking at it is not to take its place
        said = f"({type(broken).__name__})"
    return " ".join(f"{type(error).__name__}: {said}".split())


def traceback_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        return in_one_line(error)
