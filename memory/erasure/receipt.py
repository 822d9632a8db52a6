"""What an erasure has taken away, and its receipt."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

Scrub = Callable[[str, str, dict[str, Any], Collection[str]], dict[str, Any] | None]
"""(kind, user, payload, ids): a piece of somebody else's work without these memories and messages; None where
it holds none of them."""
Beside = Callable[["Gone"], Awaitable[Mapping[str, int]]]
"""What is kept outside the record is taken away; how much, by kind."""


@dataclass(frozen=True, slots=True)
class Left:
    """What was found afterwards, or cannot be looked at."""

    kind: str
    count: int
    why: str
    expected: bool
    """False: it should have gone, and the erasure is not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt. It names the person once, so that it can be handed to them, and nothing they said."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """How much went, by kind."""
    left: tuple[Left, ...]
    verified: bool
    """It was looked for in every table and in both indexes, and is gone."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(left) for left in self.left]}


@dataclass(slots=True)
class Gone:
    """What has gone so far."""

    user: str
    removed: Counter[str] = field(default_factory=Counter)
    points: list[str] = field(default_factory=list)
    """Ids in the index."""
    chunks: list[str] = field(default_factory=list)
    """Ids in the index of documents."""
    facts: set[str] = field(default_factory=set)
    said: set[str] = field(default_factory=set)
    work: list[str] = field(default_factory=list)
    """Pieces that take points out of the index."""
