"""The index: finds rows of the database by meaning and by words. SQL can rebuild it at any time.

A `Point` is stored under the id of its row. A `Question` carries the owner keys of its reader. `Rankings` are
four lists with raw scores, which `memory.search.ranking` merges. `embedded` keeps the points in this process,
`server` on a Qdrant server; both pass the same tests.

An index is a cache: it follows the log of changes (`memory.sql.changes`), and in any doubt it is emptied and
filled again (`memory.index.sync`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memory.sql.changes import ChangeLog, Position, Unfollowed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["memory", "message", "summary", "chunk"]
KINDS: frozenset[Kind] = frozenset({"memory", "message", "summary"})
"""The kinds that a search of memory asks for. A question is for some of them, or for chunks of documents."""
CHUNKS: frozenset[Kind] = frozenset({"chunk"})

LAYOUT = 6
"""Raise it when the payload of a point, the tokens of a text or how vectors are stored change: every index is
then rebuilt."""


class VectorSpace(Protocol):
    """The part of an embedder that an index depends on."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...


def fingerprint_of(space: VectorSpace) -> str:
    """The embedder and layout of an index. Vectors of different fingerprints cannot be compared."""
    return f"{space.name}/{space.dimension}/layout-{LAYOUT}"


@dataclass(frozen=True, slots=True)
class Point:
    id: str
    """The id of the database row, a UUID."""
    kind: Kind
    owners: frozenset[str]
    """Owner keys of `memory.audience`. A point without owners is never found."""
    text: str
    dense: "Sequence[float] | NDArray[np.float32] | None"
    """None while it is not known: the point is found by its words."""
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
    followed: Position | None = None
    """Of the log of changes: what comes after it, the search may not have seen."""


class Index(Protocol):
    """The interface of an index. Every method raises IndexUnavailable if the index cannot be reached."""

    in_process: bool
    """Whether it is in this process, and shows at once what is put."""

    async def ensure(self) -> None:
        """Open the index, or make an empty one if there is none that can be trusted."""
        ...

    async def position(self) -> Position | None:
        """Up to where it has followed the log of changes; None if it is still to be filled."""
        ...

    async def lease(self) -> bool:
        """Whether this process may make it follow, for a while from now."""
        ...

    async def unfollowed(self, log: ChangeLog, limit: int) -> Unfollowed:
        """Up to where it has followed the log, and the oldest changes after that."""
        ...

    async def renew(self) -> bool:
        """Whether this process may still do so. False where the index was made anew meanwhile."""
        ...

    async def advance(self, since: Position | None, position: Position, *, release: bool = False) -> bool:
        """Note that it has followed so far since the position where that began, and with `release` let others
        make it follow. False if the lease was lost, or if it is somewhere else by now: another process has
        made it anew."""
        ...

    async def release(self) -> None:
        """Let others make it follow."""
        ...

    async def put(self, points: Sequence[Point]) -> None:
        """Add points, or replace those with the same ids."""
        ...

    async def remove(self, ids: Sequence[str]) -> None:
        """Remove points. Ignores unknown ids."""
        ...

    async def search(self, *questions: Question) -> Rankings:
        """The hits of all questions, which have one text and vector and differ in what they select."""
        ...

    async def count(self) -> int:
        """The number of points, including expired ones."""
        ...

    async def present(self, ids: Sequence[str]) -> set[str]:
        """Which of these ids are in the index, whoever owns them: to verify an erasure."""
        ...

    async def advice(self) -> Sequence[str]:
        """What whoever runs it should know, a line each."""
        ...

    async def compact(self) -> bool:
        """Rewrite the files of the index, so that nothing of removed points is left in them. False if they
        are out of reach."""
        ...

    async def optimise(self) -> None:
        """Shorten what can be shortened. For a background job, never within a turn."""
        ...

    async def wipe(self) -> None:
        """Empty the index, even if it is damaged: it is to be filled."""
        ...

    async def close(self) -> None:
        """Release the index. May be called twice. A later call opens it again."""
        ...
