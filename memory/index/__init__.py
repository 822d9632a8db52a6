"""Search rows of the database by vectors and by words. The index can be rebuilt from SQL at any time.

A `Point` is a searchable row, a `Question` has the owner keys of its reader, and `Rankings` are four lists
with raw scores, which `memory.search.ranking` merges. `engine` keeps the rows of recent readers in this
process, `server` keeps all rows on a Qdrant server. The rest of Hachi calls `indexing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from memory.sql.changes import Moment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = Sequence[float] | NDArray[np.float32]

Kind = Literal["memory", "message", "summary", "chunk"]
KINDS: frozenset[Kind] = frozenset({"memory", "message", "summary"})
"""The kinds that a search of memory covers. A question is for some of them, or for chunks of documents."""
CHUNKS: frozenset[Kind] = frozenset({"chunk"})


class Point(NamedTuple):
    """A searchable row."""

    id: str
    """The id of the database row, a UUID."""
    kind: Kind
    owners: frozenset[str]
    """Owner keys of `memory.audience`, for chunks after `DOCUMENTS`. Without any it is never found."""
    text: str
    dense: "Vector | None"
    """None until it is embedded. The point is then found by words alone."""
    created_at: datetime
    expires_at: datetime | None = None
    subjects: tuple[str, ...] = ()
    window_text: str | None = None
    """The message with its neighbours, for the window lanes."""
    window_dense: "Vector | None" = None


@dataclass(frozen=True, slots=True)
class Question:
    audience: frozenset[str]
    """The reader's owner keys. Without any, a search finds nothing."""
    now: datetime
    """Points that expire at this moment or before are not found."""
    dense: "Vector | None" = None
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
    rarity: float = 0.0
    """The BM25 score of an average text that has each word of the question once; 0.0 if unknown."""
    partial: bool = False
    """Whether some rows were not searched, or by words alone."""
    since: Moment | None = None
    """A state of the database. The search may have missed later changes."""


DENSE = ("dense", "window_dense")
SPARSE = ("words", "window_words")
LANES = DENSE + SPARSE
