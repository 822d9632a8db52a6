"""The index: finds rows of the database by meaning and by words. SQL can rebuild it at any time.

A `Point` is stored under the id of its row. A `Question` carries the owner keys of its reader. `Rankings` are
four lists with raw scores, which `memory.search.ranking` merges. `embedded` keeps the points in this process,
`server` on a Qdrant server; both pass the same tests.

A **generation** is a random id that an index gets when it is created or wiped. Each indexed row stores it, so
the rows of an index that was deleted or rebuilt are due again (`memory.sql.indexing`).
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
"""The kinds that share an index, so that a question for all of them needs no condition. Chunks of documents
have their own index (`memory.documents`)."""

LAYOUT = 3
"""Raise it when the payload of a point or the tokens of a text change: every index is then rebuilt."""


class VectorSpace(Protocol):
    """The part of an embedder that an index depends on."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...


def fingerprint_of(space: VectorSpace) -> str:
    """The embedder and layout of an index. Vectors of different fingerprints cannot be compared."""
    return f"{space.name}/{space.dimension}/layout-{LAYOUT}"


async def nobody_else() -> None:
    """The default for what raises IndexUnavailable while another process indexes the same database."""


@dataclass(frozen=True, slots=True)
class Point:
    id: str
    """The id of the database row, a UUID."""
    kind: Kind
    owners: frozenset[str]
    """Owner keys of `memory.audience`. A point without owners is never found."""
    text: str
    dense: "Sequence[float] | NDArray[np.float32] | None"
    """None if it is not known: `Index.differing` does not compare it."""
    created_at: datetime
    expires_at: datetime | None = None
    subjects: tuple[str, ...] = ()
    window_text: str | None = None
    """A message with its neighbours. The window lanes index it as a separate entry."""
    window_dense: "Sequence[float] | NDArray[np.float32] | None" = None


@dataclass(frozen=True, slots=True)
class Question:
    audience: frozenset[str]
    """The reader's owner keys. Without any, a search finds nothing and does not call the engine."""
    now: datetime
    """Points that expire at this moment or before are not found."""
    dense: "Sequence[float] | NDArray[np.float32] | None" = None
    """The vector; None skips the dense lanes."""
    text: str | None = None
    """The words; None skips the sparse lanes."""
    kinds: frozenset[Kind] = KINDS
    subjects: frozenset[str] = frozenset()
    """Find points with any of these; empty means no condition."""
    since: datetime | None = None
    """Find points created at this moment or later."""
    until: datetime | None = None
    """Find points created before this moment."""
    limit: int = 50
    """The most hits of each ranking."""


class Ranked(NamedTuple):
    id: str
    score: float
    """Cosine (-1 to 1) in the dense lanes, BM25 (above 0, unbounded) in the others."""
    kind: Kind


@dataclass(frozen=True, slots=True)
class Rankings:
    """The hits of each lane, best first. A point without a window is not in the window lanes."""

    dense: tuple[Ranked, ...] = ()
    words: tuple[Ranked, ...] = ()
    window_dense: tuple[Ranked, ...] = ()
    window_words: tuple[Ranked, ...] = ()
    without_index: str | None = None
    """Why the newest rows were searched instead of the whole index."""
    partial: bool = False
    """Whether those were not all rows, or were searched by words alone."""


class Index(Protocol):
    """The interface of an index. Every method raises IndexUnavailable if the index cannot be reached.

    The first call opens it, and creates it if it is missing or was made for another embedder or layout. What
    never calls it, such as listing and exporting, works while another process holds it.
    """

    async def put(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same ids. On return they survive the end of the process."""
        ...

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove points. Ignores unknown ids."""
        ...

    async def search(self, question: Question) -> Rankings: ...

    async def count(self) -> int:
        """The number of points, including expired ones."""
        ...

    async def present(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are in the index, whoever owns them: to verify an erasure."""
        ...

    async def differing(self, points: Sequence[Point]) -> set[str]:
        """The ids of those points that are missing or that the index shows otherwise; windows aside. Checks a
        sample."""
        ...

    async def owned_by(self, owner: str) -> list[str]:
        """The ids of all points with this owner key, to verify an erasure."""
        ...

    async def compact(self) -> bool:
        """Rewrite the files of the index, so that nothing of removed points is left in them. False if they
        are out of reach."""
        ...

    async def refresh(self) -> str:
        """Create the index if it no longer exists. Returns its current generation."""
        ...

    async def obsolete(self) -> list[str]:
        """The names of what earlier versions left on the server. It may be another database's, so nothing but
        a person deletes it."""
        ...

    async def optimise(self) -> None:
        """Flush and compact. For a background job, never within a turn."""
        ...

    async def wipe(self) -> None:
        """Empty the index, even if it is damaged, and start a new generation."""
        ...

    async def close(self) -> None:
        """Release the index. May be called twice. A later call opens it again."""
        ...
