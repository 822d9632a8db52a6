"""The receipt of an erasure, and the progress of a running one."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Protocol

CleanPayload = Callable[[str, str, dict[str, Any], Collection[str]], dict[str, Any]]
"""Called with (kind, user, payload, ids): returns another user's job payload without these memories and
messages; None if the payload contains none of them."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """Data that the verification found after the erasure, or could not check."""

    kind: str
    count: int
    why: str
    expected: bool
    """False if the data should have been deleted; the erasure is then not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt. It names the person once, so that they can have it, and none of their statements."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """The number of deleted items, by kind."""
    left: tuple[Remainder, ...]
    verified: bool
    """True if a search of all tables, both indexes, the traces and all files of the data folder found no data
    that should have been deleted."""
    out_of_reach: tuple[str, ...] = ()
    """What else may hold their data, where Hachi cannot search."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(remainder) for remainder in self.left]}


@dataclass(slots=True)
class ErasureProgress:
    """What the running erasure has deleted so far."""

    user: str
    resumed: bool = False
    """Whether an earlier call began it. Texts that only that one knew may stand in free pages of SQLite."""
    removed: Counter[str] = field(default_factory=Counter)
    places: set[str] = field(default_factory=set)
    """The keys of the places where they spoke."""
    sought: set[str] = field(default_factory=set)
    """The beginnings of their longest texts, which the verification searches for."""
    index_ids: list[str] = field(default_factory=list)
    """The ids of deleted memories, messages and summaries."""
    chunk_ids: list[str] = field(default_factory=list)
    """The ids of deleted points in the index of documents."""
    facts: set[str] = field(default_factory=set)
    """The texts of their memories."""
    messages: set[str] = field(default_factory=set)
    """The texts of their messages."""
    jobs: list[str] = field(default_factory=list)
    """The ids of the jobs that remove `index_ids` from the index."""

    @property
    def texts(self) -> set[str]:
        return self.facts | self.messages | self.sought


class Outside(Protocol):
    """Erases the person where SQL and the indexes do not reach. Every step may run again."""

    async def files(self, progress: ErasureProgress) -> Mapping[str, int]:
        """Delete their lines in files. Returns the number of deleted items, by kind."""
        ...

    async def rest(self, progress: ErasureProgress) -> Mapping[str, int]:
        """Delete their traces, and what this process keeps in memory. Returns as `files` does."""
        ...

    async def search(self, progress: ErasureProgress) -> Sequence[Remainder]:
        """Search the bytes of all files, after the list of the erasure was deleted too."""
        ...

    def out_of_reach(self) -> Sequence[str]: ...
