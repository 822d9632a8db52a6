"""The receipt of an erasure, and the progress of a running one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

CleanPayload = Callable[[str, str, dict[str, Any], Collection[str]], dict[str, Any] | None]
"""Called with (kind, user, payload, ids): returns another user's job payload without these memories and
messages; None if the payload contains none of them."""
OutsideStep = Callable[["ErasureProgress"], Awaitable[Mapping[str, int]]]
"""Deletes data outside the database. Returns the number of deleted items, by kind."""


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
    """True if a search of all tables and both indexes found no data that should have been deleted."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(remainder) for remainder in self.left]}


@dataclass(slots=True)
class ErasureProgress:
    """What the running erasure has deleted so far."""

    user: str
    removed: Counter[str] = field(default_factory=Counter)
    index_ids: list[str] = field(default_factory=list)
    chunk_ids: list[str] = field(default_factory=list)
    """The ids of deleted points in the index of documents."""
    facts: set[str] = field(default_factory=set)
    """The texts of deleted memories."""
    messages: set[str] = field(default_factory=set)
    """The texts of the person's deleted messages."""
    jobs: list[str] = field(default_factory=list)
    """The ids of the jobs that remove `index_ids` from the index."""

    @property
    def texts(self) -> set[str]:
        return self.facts | self.messages
