"""What a reply was written from, and whether that still holds when the reply is stored or summarised."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Row,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    null,
    or_,
    outerjoin,
    select,
    union,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience
from memory.index.schema import slices
from memory.sql.message_rows import BY_AUDIENCE, Condition, has_text, kept, people_and_places
from memory.sql.tables import (
    Utc,
    active_conversations,
    context_entries,
    erasures,
    memories,
    memory_owners,
    memory_sources,
    messages,
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

    def to_json(self) -> dict[str, list[str]]:
        """What is stored with the reply: see `WrittenReply`."""
        return {"found": sorted(self.found), "given": sorted((self.given | self.told_in) - self.found)}

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
    connection: AsyncConnection, replies: Sequence[Row[Any]], owner: str, now: datetime
) -> list[str]:
    """Which of these rows of `messages`, with their id, time and sources, are replies that were written from
    something which has ended for this owner since."""
    written = [
        (row.id, row.sent_at, {*row.sources["found"], *row.sources["given"]})
        for row in replies
        if row.sources
    ]
    given = set[str]().union(*(sources for _, _, sources in written))
    ended = await _ended_at(connection, given, owner, now) if given else {}
    return [id for id, at, sources in written if any(ended[source] > at for source in sources & ended.keys())]


async def _ended_at(
    connection: AsyncConnection, ids: Collection[str], owner: str, now: datetime
) -> dict[str, datetime]:
    """When those of these messages and memories that no longer hold for this owner ended; `now` for those
    that are deleted. A message ends with a fact that it states."""
    rows = (await connection.execute(_ENDED, {"ids": list(ids), "of": owner, "now": now})).all()
    ended = {row.id: row.at for row in rows if row.at is not None}
    ended |= {row.stating: row.at for row in rows if row.stating is not None and row.at is not None}
    return dict.fromkeys(set(ids).difference(row.id for row in rows), now) | ended


def _ended() -> CompoundSelect[Any]:
    """Rows with an id that is still there, the message that states it, and when it ended, where it has."""
    ids: BindParameter[str] = bindparam("ids", expanding=True)
    now = bindparam("now", type_=Utc())
    nobody, never = cast(null(), Text), cast(null(), Utc())
    states, new = memory_sources.c, memories.alias("new")
    stated = outerjoin(
        memories, memory_sources, and_(states.memory_id == memories.c.id, states.message_id.in_(ids))
    )
    given = or_(memories.c.id.in_(ids), states.message_id.is_not(None))
    replaced = and_(memory_owners.c.owner == bindparam("of"), memory_owners.c.superseded_by.is_not(None))
    columns = (tasks.c.id, active_conversations.c.id, context_entries.c.message_id)
    return union_all(
        select(messages.c.id, nobody.label("stating"), messages.c.outdated_at.label("at")).where(
            messages.c.id.in_(ids)
        ),
        select(memories.c.id, states.message_id, never).select_from(stated).where(given),
        select(memories.c.id, states.message_id, memories.c.expires_at)
        .select_from(stated)
        .where(given, memories.c.expires_at <= now),
        select(memories.c.id, states.message_id, func.max(new.c.created_at))
        .select_from(stated)
        .join(memory_owners, memory_owners.c.memory_id == memories.c.id)
        .join(new, new.c.id == memory_owners.c.superseded_by)
        .where(given, replaced)
        .group_by(memories.c.id, states.message_id),
        *(select(column, nobody, never).where(column.in_(ids)) for column in columns),
    )


_ENDED = _ended()
