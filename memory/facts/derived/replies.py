"""What a reply was written from, and whether that is still there when the reply is stored."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, exists, func, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.index.schema import slices
from memory.sql.message_rows import BY_AUDIENCE, Condition, kept, people_and_places
from memory.sql.rests_on import How, record_each
from memory.sql.tables import (
    Utc,
    active_conversations,
    erasures,
    memories,
    memory_owners,
    messages,
    rests_on,
    tasks,
)

IDS_AT_ONCE = 500
"""Ids in one statement."""


@dataclass(frozen=True, slots=True)
class ReplySources:
    given: frozenset[str]
    """The messages, memories, summaries and tasks that the prompt was written from."""
    told_in: frozenset[str]
    """The messages in which the given profile was told; some may be gone already."""
    audience: Audience
    """Who reads the reply."""
    since: datetime
    """When the turn began, before anything was read."""
    found: frozenset[str] = frozenset()
    """What searches returned."""

    @property
    def ids(self) -> frozenset[str]:
        return self.given | self.found

    async def record(self, connection: AsyncConnection, reply: str, answering: str) -> None:
        """Store what the reply rests on: the message that it answers, and all that the model was shown."""
        shown: set[tuple[str, str, How]] = {(reply, id, "found") for id in self.ids | self.told_in}
        await record_each(connection, {(reply, answering, "answered"), *shown})

    def lost(self) -> Condition:
        """True if one of them has been deleted, forgotten or withdrawn from the audience since, or is to go
        with a person who is being erased. A memory that was replaced is not lost."""
        values: dict[str, Any] = {
            "sources": list(self.ids),
            "how_many": len(self.ids),
            "told_in": list(self.told_in),
        }
        people, places = people_and_places(self.audience)
        values |= {"readers": list(self.audience.keys), "people": people, "places": places}
        return Condition(_LOST, values | {"since": self.since})


def _lost() -> ColumnElement[bool]:
    sources: BindParameter[str] = bindparam("sources", expanding=True)
    since = bindparam("since", type_=Utc())
    active, owner = active_conversations, memory_owners.c.owner
    standing = union(
        select(messages.c.id).where(messages.c.id.in_(sources), kept(), BY_AUDIENCE),
        select(memory_owners.c.memory_id).where(
            memory_owners.c.memory_id.in_(sources), owner.in_(bindparam("readers", expanding=True))
        ),
        select(active.c.id).where(
            active.c.id.in_(sources), or_(active.c.forgotten_at.is_(None), active.c.forgotten_at <= since)
        ),
        select(tasks.c.id).where(tasks.c.id.in_(sources)),
    ).subquery()
    count = select(func.count()).select_from(standing).scalar_subquery()
    going = erasures.c
    said = and_(messages.c.user_id == going.user_id, messages.c.sent_at <= going.begun_at)
    told = and_(memories.c.user_id == going.user_id, memories.c.created_at <= going.begun_at)
    erased = or_(
        exists().where(messages.c.id.in_(sources), said), exists().where(memories.c.id.in_(sources), told)
    )
    told_in = and_(messages.c.id.in_(bindparam("told_in", expanding=True)), messages.c.forgotten_at > since)
    people = select(going.user_id).where(erased)
    return or_(count < bindparam("how_many"), exists().where(told_in), people.exists())


_LOST = _lost()
"""Built once: building it takes longer than running it."""


async def given_to(connection: AsyncConnection, replies: Collection[str]) -> dict[str, set[str]]:
    """The ids of all that the model was given for each of these replies."""
    found: dict[str, set[str]] = {}
    for part in slices(sorted(replies), IDS_AT_ONCE):
        query = select(rests_on).where(rests_on.c.derived_id.in_(part), rests_on.c.how == "found")
        for row in await connection.execute(query):
            found.setdefault(row.derived_id, set()).add(row.source_id)
    return found
