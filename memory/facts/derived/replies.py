"""What a reply was written from, and whether that still holds when the reply is stored."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, union

from memory.audience import Audience
from memory.sql.message_rows import kept
from memory.sql.tables import active_conversations, erasure_items, memories, memory_owners, messages, tasks


@dataclass(frozen=True, slots=True)
class ReplySources:
    ids: frozenset[str]
    """The messages, memories, summaries and tasks that the model was given."""
    told_in: frozenset[str]
    """The messages in which the given profile was told; some may be gone already."""
    audience: Audience
    """Who reads the reply."""
    since: datetime
    """When the turn began, before anything was read."""

    def lost(self) -> ColumnElement[bool]:
        """True if one of them has been deleted, forgotten or withdrawn from the audience since, or is to go
        with a person who is being erased. A memory that was replaced is not lost."""
        active, owner = active_conversations, memory_owners.c.owner
        standing = union(
            select(messages.c.id).where(messages.c.id.in_(self.ids), kept()),
            select(memory_owners.c.memory_id).where(
                memory_owners.c.memory_id.in_(self.ids), owner.in_(self.audience.keys)
            ),
            select(active.c.id).where(
                active.c.id.in_(self.ids),
                or_(active.c.forgotten_at.is_(None), active.c.forgotten_at <= self.since),
            ),
            select(tasks.c.id).where(tasks.c.id.in_(self.ids)),
        ).subquery()
        count = select(func.count()).select_from(standing).scalar_subquery()
        item = erasure_items.c
        told = exists().where(memories.c.id == item.id, memories.c.user_id == item.user_id)
        erased = and_(item.id.in_(self.ids), or_(item.kind == "message", told))
        told_in = and_(messages.c.id.in_(self.told_in), messages.c.forgotten_at > self.since)
        return or_(count < len(self.ids), exists().where(told_in), exists().where(erased))
