"""Read and delete the rows of a person, others' rows that name them, and the progress of their erasure."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    Table,
    Text,
    Update,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, user_key
from memory.forgetting.purge import NOBODY
from memory.process.pace import unhurried
from memory.sql import tables as t
from memory.sql.hidden import parts
from memory.sql.rests_on import drop_rows

SHARED, SHOWN = "memories shared", "replies shown"
STAYS = {
    SHARED: "somebody else stated them too, or they are everybody's",
    SHOWN: "they were written to others while something of this person was in view, and do not contain it",
}
"""The reasons why rows stay on purpose, by kind."""


@dataclass(slots=True)
class ErasureProgress:
    """The progress of a running erasure."""

    user: str
    counts: Counter[str] = field(default_factory=Counter)
    """The number of deleted items by kind, and of items that stay by the kinds of `STAYS`."""
    places: set[str] = field(default_factory=set)
    """The keys of the places where they wrote."""
    ids: set[str] = field(default_factory=set)
    """The ids of the messages, memories, summaries and chunks of documents that this run deletes."""
    texts: set[str] = field(default_factory=set)
    """The texts of these messages."""

    def add_deleted(self, ids: Collection[str]) -> None:
        """Count these rows as deleted, and schedule their removal from the index."""
        self.ids.update(ids)
        self.counts["index"] += len(ids)


async def stored_progress(connection: AsyncConnection, user: str, places: Collection[str]) -> ErasureProgress:
    """Return the progress of an interrupted erasure, or a new one. `places` are added to its places."""
    row = (await connection.execute(select(t.erasures).where(t.erasures.c.user_id == user))).first()
    counts, before = (row.removed, row.places) if row else ({}, ())
    return ErasureProgress(user, Counter(counts), {*before, *places})


async def begin(connection: AsyncConnection, user: str, now: datetime) -> None:
    """Store that this person is being erased, unless that is already stored."""
    same = select(t.erasures.c.user_id).where(t.erasures.c.user_id == user)
    if await connection.scalar(same) is None:
        new = {"user_id": user, "begun_at": now, "places": [], "removed": {}}
        await connection.execute(insert(t.erasures).values(**new))


async def look_up(connection: AsyncConnection, progress: ErasureProgress) -> None:
    """Add the places where they wrote, and the ids and texts of their rows, including hidden ones."""
    user = progress.user
    progress.places |= await _places_of(connection, user)
    spoken = select(t.messages.c.id, t.messages.c.role, t.messages.c.text).where(t.messages.c.user_id == user)
    async for message in unhurried(await connection.execute(spoken)):
        progress.ids.add(message.id)
        progress.texts |= {message.text} if message.role == "user" else set()
    alone = select(t.memories.c.id).where(stated_only_by(user))
    summaries = select(t.active_conversations.c.id).where(t.active_conversations.c.owner == user_key(user))
    progress.ids |= {*await connection.scalars(alone), *await connection.scalars(summaries)}


async def store(connection: AsyncConnection, progress: ErasureProgress) -> None:
    now = {"places": sorted(progress.places), "removed": dict(progress.counts)}
    same = t.erasures.c.user_id == progress.user
    await connection.execute(update(t.erasures).where(same).values(**now))


async def end(connection: AsyncConnection, user: str) -> None:
    await connection.execute(delete(t.erasures).where(t.erasures.c.user_id == user))


async def unfinished(connection: AsyncConnection) -> list[tuple[str, bool]]:
    """Return the people whose erasure is unfinished, each with whether they have written since it began."""
    since = select(func.count()).where(
        t.messages.c.user_id == t.erasures.c.user_id, t.messages.c.sent_at > t.erasures.c.begun_at
    )
    query = select(t.erasures.c.user_id, since.scalar_subquery().label("spoken"))
    return [(row.user_id, row.spoken > 0) for row in await connection.execute(query)]


def memory_ids_of(user: str) -> Select[str]:
    """Return the ids of the memories that the person owns or stated, oldest first."""
    link = (t.memory_owners.c.memory_id == t.memories.c.id, t.memory_owners.c.owner == user_key(user))
    query = select(t.memories.c.id).where(or_(exists().where(*link), t.memories.c.user_id == user))
    return query.order_by(t.memories.c.created_at, t.memories.c.id)


def stated_only_by(user: str) -> ColumnElement[bool]:
    """Match memories that only this person stated and that are not global."""
    link = t.memory_owners.c
    others = and_(link.owner.startswith("user:"), link.owner != user_key(user))
    shared = select(link.memory_id).where(or_(others, link.owner == GLOBAL))
    return and_(t.memories.c.user_id == user, t.memories.c.id.not_in(shared))


async def _places_of(connection: AsyncConnection, user: str) -> set[str]:
    """Return the keys of the places where the person wrote, or that own a memory of theirs."""
    link = t.memory_owners.c
    spoke = select(t.messages.c.place).where(t.messages.c.user_id == user, t.messages.c.place != "")
    told = link.memory_id.in_(memory_ids_of(user).order_by(None))
    known = select(link.owner).where(told, link.owner.startswith("place:"))
    found = [await connection.scalars(query.distinct()) for query in (spoke, known)]
    return {key for keys in found for key in keys}


def _own(user: str) -> dict[str, tuple[Table, ColumnElement[bool]]]:
    """Return the table and the condition on its rows for each kind."""
    return {
        "work": (t.work, t.work.c.user_id == user),
        "tasks": (t.tasks, t.tasks.c.user_id == user),
        "context": (t.context_entries, t.context_entries.c.user_id == user),
        "forgettings": (t.forgettings, t.forgettings.c.person == user),
        "keys": (t.api_keys, t.api_keys.c.user_id == user),
        "names": (t.speakers, t.speakers.c.owner == user_key(user)),
        "figures": (t.figures, t.figures.c.user_id == user),
        "check-ins": (t.check_ins, t.check_ins.c.user_id == user),
        "links": (t.links, t.links.c.user_id == user),
        "link codes": (t.link_codes, t.link_codes.c.user_id == user),
        "person": (t.users, t.users.c.id == user),
    }


async def count(connection: AsyncConnection, user: str) -> dict[str, int]:
    """Return how many rows an erasure would delete now, by kind, including those that others may share."""
    key = user_key(user)
    counted: dict[str, ColumnElement[bool]] = {
        "memories": t.memories.c.id.in_(memory_ids_of(user).order_by(None)),
        "messages": t.messages.c.user_id == user,
        "summaries": t.active_conversations.c.owner == key,
        **{kind: condition for kind, (_, condition) in _own(user).items()},
        "documents": t.knowledge_documents.c.owner == key,
    }
    queries = [select(func.count()).where(condition).scalar_subquery() for condition in counted.values()]
    found = (await connection.execute(select(*queries))).one()
    return {kind: number for kind, number in zip(counted, found, strict=True) if number}


async def delete_rows(connection: AsyncConnection, user: str, now: datetime) -> Mapping[str, int]:
    """Delete the rows of each kind and return their numbers. Keys are revoked and anonymised instead, because
    without any key a server on this machine admits everybody."""
    removed = {}
    for kind, (table, mine) in _own(user).items():
        if table is t.context_entries:
            await drop_rows(connection, list(await connection.scalars(select(table.c.id).where(mine))))
        statement: Delete | Update = delete(table).where(mine)
        if table is t.api_keys:
            blank = {"name": "erased", "user_id": NOBODY, "digest": table.c.id, "last_used_at": None}
            statement = update(table).where(mine).values(**blank, revoked_at=now)
        removed[kind] = (await connection.execute(statement)).rowcount
    return removed


async def delete_summaries(connection: AsyncConnection, user: str) -> list[str]:
    """Delete the summaries of the person's private conversations. Returns their ids."""
    mine = t.active_conversations.c.owner == user_key(user)
    ids = list(await connection.scalars(select(t.active_conversations.c.id).where(mine)))
    await drop_rows(connection, ids)
    await connection.execute(delete(t.active_conversations).where(mine))
    return ids


async def delete_conversations(connection: AsyncConnection, user: str) -> None:
    """Delete the person's private conversations. If somebody else uses the same id, it becomes theirs."""
    talks, said = t.conversations.c, t.messages.c
    in_it, by_other = said.conversation_id == talks.id, said.user_id != user
    heir = select(func.min(said.user_id)).where(in_it, said.place == "", by_other)
    owned = talks.user_id == user
    inherited = update(t.conversations).where(owned, heir.scalar_subquery().is_not(None))
    await connection.execute(inherited.values(user_id=heir.scalar_subquery()))
    # A conversation in a place may have a private one's id. It is deleted if nobody else wrote in it.
    named = and_(talks.id == f"dm:{user}", ~exists().where(in_it, by_other))
    await connection.execute(delete(t.conversations).where(or_(owned, named)))
    await _delete_names(connection, user)


async def _delete_names(connection: AsyncConnection, user: str) -> None:
    """Delete the person's display names in places where no message has them as its author any more."""
    speaks = t.speakers.c
    own = select(speaks.author).where(speaks.owner == user_key(user))
    names = list((await connection.execute(own)).scalars())
    used = exists().where(t.messages.c.place == speaks.owner, t.messages.c.author == speaks.author)
    there = speaks.owner.startswith("place:")
    await connection.execute(delete(t.speakers).where(there, speaks.author.in_(names), ~used))


async def unname(connection: AsyncConnection, user: str) -> None:
    """Remove the person from rows of others: the history of memories, and settings of places."""
    key = user_key(user)
    for step in await _steps_naming(connection, user):
        others = [owner for owner in step.owners if owner != key]
        same = t.memory_updates.c.id == step.id
        if not others:
            await connection.execute(delete(t.memory_updates).where(same))
        elif others != step.owners or step.user_id == user:
            by = NOBODY if step.user_id == user else step.user_id
            await connection.execute(update(t.memory_updates).where(same).values(owners=others, user_id=by))
    by_them = update(t.places).where(t.places.c.changed_by == user)
    await connection.execute(by_them.values(changed_by=NOBODY))


async def steps_of(connection: AsyncConnection, user: str, facts: Collection[str]) -> int:
    """Return how many steps of the history concern these memories, or this person alone."""
    step = t.memory_updates.c
    own = (row for row in await _steps_naming(connection, user) if set(row.owners) <= {user_key(user)})
    found = {row.id for row in own}
    for part in parts(facts):
        about = select(step.id).where(or_(step.old_id.in_(part), step.new_id.in_(part)))
        found |= set(await connection.scalars(about))
    return len(found)


async def _steps_naming(connection: AsyncConnection, user: str) -> Sequence[Any]:
    """Return the steps of the history that the person made, or that apply to their memories."""
    step = t.memory_updates.c
    key = json.dumps(user_key(user))
    theirs = or_(step.user_id == user, cast(step.owners, Text).contains(key, autoescape=True))
    return (await connection.execute(select(t.memory_updates).where(theirs))).all()
