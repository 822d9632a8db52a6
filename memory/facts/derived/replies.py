"""What a reply was written from, and whether that still holds when the reply is stored or summarised."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, exists, func, or_, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.index.schema import slices
from memory.sql.message_rows import Condition, has_text, kept
from memory.sql.tables import (
    Utc,
    active_conversations,
    context_entries,
    erasure_items,
    memories,
    memory_owners,
    memory_sources,
    memory_updates,
    messages,
    tasks,
)

IDS_AT_ONCE = 500
"""Ids in one statement."""


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
    found: frozenset[str] = frozenset()
    """Those of the ids that searches returned."""

    def to_json(self) -> dict[str, list[str]]:
        """What is stored with the reply: see `WrittenReply`."""
        return {"found": sorted(self.found), "given": sorted((self.ids | self.told_in) - self.found)}

    def lost(self) -> Condition:
        """True if one of them has been deleted, forgotten or withdrawn from the audience since, or is to go
        with a person who is being erased. A memory that was replaced is not lost."""
        values = {"sources": list(self.ids), "how_many": len(self.ids), "told_in": list(self.told_in)}
        return Condition(_LOST, values | {"readers": list(self.audience.keys), "since": self.since})


def _lost() -> ColumnElement[bool]:
    sources: BindParameter[str] = bindparam("sources", expanding=True)
    since = bindparam("since", type_=Utc())
    active, owner = active_conversations, memory_owners.c.owner
    standing = union(
        select(messages.c.id).where(messages.c.id.in_(sources), kept()),
        select(memory_owners.c.memory_id).where(
            memory_owners.c.memory_id.in_(sources), owner.in_(bindparam("readers", expanding=True))
        ),
        select(active.c.id).where(
            active.c.id.in_(sources), or_(active.c.forgotten_at.is_(None), active.c.forgotten_at <= since)
        ),
        select(tasks.c.id).where(tasks.c.id.in_(sources)),
    ).subquery()
    count = select(func.count()).select_from(standing).scalar_subquery()
    item = erasure_items.c
    told = exists().where(memories.c.id == item.id, memories.c.user_id == item.user_id)
    erased = and_(item.id.in_(sources), or_(item.kind == "message", told))
    told_in = and_(messages.c.id.in_(bindparam("told_in", expanding=True)), messages.c.forgotten_at > since)
    return or_(count < bindparam("how_many"), exists().where(told_in), exists().where(erased))


_LOST = _lost()
"""Built once: building it takes longer than running it."""


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A stored reply with the ids that it was written from."""

    id: str
    user: str
    """Who was answered."""
    text: str
    question: str
    """What it answers, with the names of the asker."""
    found: frozenset[str]
    """The ids that searches returned in its turn."""
    given: frozenset[str]
    """The ids of all that the model was given."""

    @classmethod
    def of(cls, row: Any, asked: Iterable[Any]) -> "WrittenReply":
        question = " ".join([row.user_id, *(f"{one.author}: {one.text}" for one in asked)])
        found = frozenset(row.sources["found"])
        return cls(row.id, row.user_id, row.text, question, found, found.union(row.sources["given"]))


async def source_texts(connection: AsyncConnection, replies: Iterable[WrittenReply]) -> dict[str, str]:
    """The texts of the messages, with their authors, and of the memories that these replies were written from
    and that are still there, by id."""
    ids = sorted({id for reply in replies for id in reply.given})
    texts: dict[str, str] = {}
    for part in slices(ids, IDS_AT_ONCE):
        said = select(messages.c.id, messages.c.author, messages.c.text).where(
            messages.c.id.in_(part), has_text()
        )
        texts |= {row.id: f"{row.author}: {row.text}" for row in await connection.execute(said)}
        facts = select(memories.c.id, memories.c.content).where(memories.c.id.in_(part))
        texts |= {row.id: row.content for row in await connection.execute(facts)}
    return texts


async def replies_from_ended(
    connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime
) -> list[str]:
    """Which of these are replies that were written from something which has ended for this owner since."""
    written = select(messages.c.id, messages.c.sent_at, messages.c.sources)
    written = written.where(messages.c.id.in_(ids), messages.c.sources.is_not(None))
    replies = [
        (row.id, row.sent_at, {*row.sources["found"], *row.sources["given"]})
        for row in await connection.execute(written)
    ]
    given = set[str]().union(*(sources for _, _, sources in replies))
    ended = await _ended_at(connection, given, owner, now) if given else {}
    return [id for id, at, sources in replies if any(ended[source] > at for source in sources & ended.keys())]


async def _ended_at(
    connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime
) -> dict[str, datetime]:
    """When those of these messages and memories that no longer hold for this owner ended; `now` for those
    that are deleted. A message ends with a fact that it states."""
    stated = select(memory_sources.c.message_id, memory_sources.c.memory_id)
    stating = (await connection.execute(stated.where(memory_sources.c.message_id.in_(ids)))).all()
    facts = {*ids, *(row.memory_id for row in stating)}
    new = memories.alias("new")
    replaced = (
        select(memory_updates.c.old_id, func.max(new.c.created_at))
        .join(new, new.c.id == memory_updates.c.new_id)
        .join(memory_owners, memory_owners.c.memory_id == memory_updates.c.old_id)
        .where(
            memory_updates.c.old_id.in_(facts),
            memory_owners.c.owner == owner,
            memory_owners.c.superseded == 1,
        )
        .group_by(memory_updates.c.old_id)
    )
    ended = await _times(connection, replaced)
    expired = select(memories.c.id, memories.c.expires_at).where(
        memories.c.id.in_(facts), memories.c.expires_at <= now
    )
    ended |= await _times(connection, expired)
    ended |= {row.message_id: ended[row.memory_id] for row in stating if row.memory_id in ended}
    marked = select(messages.c.id, messages.c.outdated_at).where(
        messages.c.id.in_(ids), messages.c.outdated_at.is_not(None)
    )
    ended |= await _times(connection, marked)
    columns = (
        messages.c.id,
        memories.c.id,
        tasks.c.id,
        active_conversations.c.id,
        context_entries.c.message_id,
    )
    known = await connection.scalars(union(*(select(column).where(column.in_(ids)) for column in columns)))
    return dict.fromkeys(set(ids).difference(known), now) | ended


async def _times(connection: AsyncConnection, ids_and_times: Select[Any]) -> dict[str, datetime]:
    return {row[0]: row[1] for row in await connection.execute(ids_and_times)}
