"""The index: what can be found, by meaning and by words. Rebuildable; SQL is the record.

A `Point` goes in under the id of its row, a `Question` comes with the audience's keys, and `Rankings` come
back: four lists with their raw scores, to be fused in `memory.search.recall`. `embedded` keeps the points
in this process, `server` on a Qdrant server; both pass the same tests.

A **generation** is the life of one index: a random id made when it is created or wiped and kept inside it.
A row in SQL remembers the generation under which it was indexed, so that an index that was deleted, or made
anew for another embedder, is noticed and caught up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["memory", "message", "summary", "chunk"]
KINDS: frozenset[Kind] = frozenset({"memory", "message", "summary"})
"""What one index holds together, so that asking for all of them needs no condition. Chunks of documents are
kept in an index of their own (`memory.documents`)."""

LAYOUT = 1
"""Raised whenever what is kept for a point, or how its words are cut, changes: every index is then remade."""


def fingerprint_of(embedder: str, dimension: int) -> str:
    """What an index was built with: another fingerprint means that its vectors cannot be compared."""
    return f"{embedder}/{dimension}/layout-{LAYOUT}"


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that can be found."""

    id: str
    """The id of its row, a uuid."""
    kind: Kind
    owners: frozenset[str]
    """The keys of `memory.audience`; without one it is never found."""
    text: str
    dense: "Sequence[float] | NDArray[np.float32]"
    created_at: datetime
    expires_at: datetime | None = None
    subjects: tuple[str, ...] = ()
    group: str | None = None
    """The conversation that a message belongs to."""
    window_text: str | None = None
    """A message with its neighbours, a document of its own in the window lanes."""
    window_dense: "Sequence[float] | NDArray[np.float32] | None" = None


@dataclass(frozen=True, slots=True)
class Question:
    audience: frozenset[str]
    """The owner keys of the reader. Empty finds nothing, and the engine is not asked."""
    now: datetime
    """What expires at this moment or before is not found."""
    dense: "Sequence[float] | NDArray[np.float32] | None" = None
    """The question as a vector; None leaves out the two lanes by meaning."""
    text: str | None = None
    """The question's words; None leaves out the two lanes by words."""
    kinds: frozenset[Kind] = KINDS
    subjects: frozenset[str] = frozenset()
    """Any of these; empty means whatever the subject. The same holds for `groups`."""
    groups: frozenset[str] = frozenset()
    since: datetime | None = None
    """Created at this moment or later."""
    until: datetime | None = None
    """Created before this moment."""
    limit: int = 50
    """The length of each ranking at most."""


class Ranked(NamedTuple):
    id: str
    score: float
    """Cosine (-1 to 1) in the lanes by meaning, BM25 (above 0, unbounded) in those by words."""
    kind: Kind


@dataclass(frozen=True, slots=True)
class Rankings:
    """Best first. A point without a window is not in the window lanes."""

    dense: tuple[Ranked, ...] = ()
    words: tuple[Ranked, ...] = ()
    window_dense: tuple[Ranked, ...] = ()
    window_words: tuple[Ranked, ...] = ()


class Index(Protocol):
    """Everything here raises `IndexUnavailable` where the index cannot be reached."""

    async def put(self, points: Sequence[Point]) -> None:
        """Adds or replaces, by id. Once it returns the points survive the end of the process."""
        ...

    async def remove(self, ids: Sequence[str]) -> None:
        """Ids that are not there are passed over."""
        ...

    async def search(self, question: Question) -> Rankings: ...

    async def count(self) -> int:
        """All points, of every owner, the expired ones included."""
        ...

    async def present(self, ids: Sequence[str]) -> set[str]:
        """Which of these are there, whoever owns them: to verify an erasure."""
        ...

    async def refresh(self) -> str:
        """Looks again, makes the index where it has vanished, and returns its generation as it now is."""
        ...

    async def optimise(self) -> None:
        """Writes out and tidies. For a background job, never within a turn."""
        ...

    async def wipe(self) -> None:
        """Empties it and begins a new generation."""
        ...

    async def close(self) -> None: ...
