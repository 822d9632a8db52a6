"""The sources of a reply, and a check that they still exist when the reply is stored."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, bindparam, exists, func, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, Audience, Place, user_key
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.hidden import TASK_IS_HIDDEN, link_is_hidden, parts
from memory.sql.messages.message_rows import Condition, is_visible
from memory.sql.readable import MESSAGES_READABLE, people_and_places
from memory.sql.rests_on import How, record, record_each
from memory.sql.tables import active_conversations, memory_owners, messages, rests_on, tasks


@dataclass(frozen=True, slots=True)
class ReplySources:
    shown: frozenset[str]
    """The ids of the messages, memories, summaries and tasks in the prompt."""
    profile_messages: frozenset[str]
    """The ids of the messages that the profile rests on, without those hidden when it was read."""
    audience: Audience
    """The readers of the reply."""
    search_hits: frozenset[str] = frozenset()
    """The ids that searches returned."""
    expired: Mapping[str, str] = field(default_factory=dict)
    """Sources that expired since, by memory id, each with the message that stated it: the reply rests on
    that message instead. A memory without a message is its own source."""

    @property
    def ids(self) -> frozenset[str]:
        return (self.shown | self.profile_messages | self.search_hits) - self.expired.keys() | {
            *self.expired.values()
        }

    async def record(
        self, connection: AsyncConnection, reply: str, answering: str, how: How = "answered"
    ) -> None:
        """Store the reply's sources: the message that it answers or follows, and all that the model read."""
        shown: set[tuple[str, str, How]] = {(reply, id, "found") for id in self.ids}
        await record_each(connection, {(reply, answering, how), *shown})

    def any_missing(self) -> Condition:
        """Match if a source has been deleted, hidden or withdrawn since. A superseded one still counts."""
        people, places = people_and_places(self.audience)
        values: dict[str, Any] = {"sources": list(self.ids), "how_many": len(self.ids)}
        values |= {"readers": list(self.audience.keys), "people": people, "places": places}
        return Condition(_ANY_MISSING, values)


def _any_missing() -> ColumnElement[bool]:
    sources: BindParameter[str] = bindparam("sources", expanding=True)
    active, link = active_conversations.c, memory_owners.c
    read = link.owner.in_(bindparam("readers", expanding=True))
    standing = union(
        select(messages.c.id).where(messages.c.id.in_(sources), is_visible(), MESSAGES_READABLE),
        select(link.memory_id).where(link.memory_id.in_(sources), read, ~link_is_hidden()),
        select(active.id).where(active.id.in_(sources)),
        select(tasks.c.id).where(tasks.c.id.in_(sources), ~TASK_IS_HIDDEN),
    ).subquery()
    return select(func.count()).select_from(standing).scalar_subquery() < bindparam("how_many")


_ANY_MISSING = _any_missing()
"""Built once: building it takes longer than running it."""


async def note_answer(connection: AsyncConnection, reply: Message, user: str, place: Place) -> None:
    """Link a reply that was stored without its question to the messages right before it."""
    talk = (
        messages.c.conversation_id == reply.conversation_id,
        messages.c.user_id == user,
        messages.c.place == place.stored,
    )
    own = select(messages.c.seq).where(messages.c.id == reply.id).scalar_subquery()
    before = select(func.max(messages.c.seq)).where(*talk, messages.c.role == "assistant")
    since = func.coalesce(before.where(messages.c.seq < own).scalar_subquery(), 0)
    asked = select(messages.c.id).where(*talk, messages.c.seq > since, messages.c.seq < own)
    await record(connection, reply.id, await connection.scalars(asked), "answered")


async def stated_by_others(database: Database, ids: Collection[str], people: Collection[str]) -> set[str]:
    """Return which of these messages and memories were stated by somebody other than these `people`. Memories
    owned by a place alone count, those of everybody do not."""
    link, theirs, found = memory_owners.c, memory_owners.alias("theirs").c, set[str]()
    own = theirs.owner.in_([*map(user_key, people), GLOBAL])
    for part in parts(ids):
        said = select(messages.c.id).where(messages.c.id.in_(part), messages.c.user_id.not_in(people))
        facts = select(link.memory_id).where(link.memory_id.in_(part))
        facts = facts.where(~exists().where(theirs.memory_id == link.memory_id, own))
        found |= {row[0] for row in await database.rows(said.union(facts))}
    return found


async def recounting(database: Database, replies: Collection[str], user: str) -> set[str]:
    """Return which of these private replies to the user were written from what other people stated."""
    rests = select(rests_on).where(rests_on.c.derived_id.in_(replies), rests_on.c.how == "found")
    rows = await database.rows(rests) if replies else []
    others = await stated_by_others(database, {row.source_id for row in rows}, [user])
    return {row.derived_id for row in rows if row.source_id in others}
