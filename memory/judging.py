"""Where words and vectors leave it in doubt whether a new statement ends an old one, a model may be asked.

It is optional: with no judge, or one that fails, both statements are kept.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Doubt:
    """One pair to judge."""

    old: str
    old_said_at: datetime
    new: str
    new_said_at: datetime


Judge = Callable[[Sequence[Doubt]], Awaitable[Sequence[bool]]]
"""Takes all doubts of a turn at once; for each, whether the new statement replaces the old one. May raise."""
