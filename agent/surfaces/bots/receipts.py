"""What a turn remembered, as it is told to the person, with a way to take it back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from memory.records import Decision

WEEK = 6
"""Days ahead that are named by their weekday."""


@dataclass(frozen=True, slots=True)
class Receipt:
    content: str
    """What is remembered now."""
    id: str
    expires_at: datetime | None
    undo: Literal["delete", "undo"]
    """What takes it back: a new memory is deleted, one that replaced another gives way to it again."""


def receipts_of(decisions: Sequence[Decision]) -> tuple[Receipt, ...]:
    """Of what is new; what was known or dropped has none. A memory has one, its last."""
    found = {
        decision.id: Receipt(
            decision.content,
            decision.id,
            decision.expires_at,
            "undo" if decision.action == "replace" else "delete",
        )
        for decision in decisions
        if decision.id is not None and decision.action in ("add", "replace")
    }
    return tuple(found.values())


def until(expires_at: datetime | None, now: datetime, zone: tzinfo | None) -> str:
    """When it is forgotten, by the clock of the zone: `` until Friday``; empty for what is kept for good."""
    if expires_at is None:
        return ""
    then, today = expires_at.astimezone(zone), now.astimezone(zone)
    days = (then.date() - today.date()).days
    if days <= 0:
        return f" until {then:%H:%M}"
    if days == 1:
        return f" until tomorrow, {then:%H:%M}"
    if days <= WEEK:
        return f" until {then:%A}"
    month = f"{then.day} {then:%B}"
    return f" until {month}" if then.year == today.year else f" until {month} {then.year}"
