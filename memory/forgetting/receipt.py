"""The receipt of an erasure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Remainder:
    """What was counted after the erasure, or could not be reached."""

    kind: str
    count: int
    why: str
    expected: bool
    """False if it should have been deleted; the erasure is then not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt. It names the person once, so that they can have it, and none of their statements."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """The number of deleted items, by kind."""
    left: tuple[Remainder, ...]
    verified: bool
    """True if the tables and the indexes were counted afterwards, and hold nothing that should have gone."""
    out_of_reach: tuple[str, ...] = ()
    """What else may hold their data, where Hachi cannot delete it."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(remainder) for remainder in self.left]}
