"""The receipt of an erasure, and what is collected while one runs."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

CleanPayload = Callable[[str, str, dict[str, Any], Collection[str]], dict[str, Any] | None]
"""(kind, user, payload, ids): the payload of somebody else's job without these memories and messages; None
where it holds none of them."""
OutsideStep = Callable[["ErasureProgress"], Awaitable[Mapping[str, int]]]
"""Deletes what is kept outside the database. Returns how much, by kind."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """What was found after the erasure, or could not be checked."""

    kind: str
    count: int
    why: str
    expected: bool
    """False: it should have been deleted, and the erasure is not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt. It names the person once, so that it can be handed to them, and nothing they said."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """How much was deleted, by kind."""
    left: tuple[Remainder, ...]
    verified: bool
    """Every table and both indexes were searched, and nothing was found that should have been deleted."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(remainder) for remainder in self.left]}


@dataclass(slots=True)
class ErasureProgress:
    """What has been deleted so far."""

    user: str
    removed: Counter[str] = field(default_factory=Counter)
    index_ids: list[str] = field(default_factory=list)
    chunk_ids: list[str] = field(default_factory=list)
    """In the index of documents."""
    facts: set[str] = field(default_factory=set)
    """The texts of deleted memories."""
    messages: set[str] = field(default_factory=set)
    """The texts of the person's deleted messages."""
    jobs: list[str] = field(default_factory=list)
    """The ids of the jobs that remove `index_ids` from the index."""

    @property
    def texts(self) -> set[str]:
        return self.facts | self.messages
