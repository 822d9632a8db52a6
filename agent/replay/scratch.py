"""A copy of what was remembered, for a turn to be taken again in: nothing real is written.

It holds what the turn's audience may read today, without what was said from that turn on and what was learned
from it: a memory that was corrected, added or deleted by hand since then shows; what the conversation itself
went on to say does not. What is overwritten as it changes (the person's context, their tasks, the summary)
comes from the trace where it has changed since.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, false, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.companion import Companion
from agent.tracing.trace import Trace
from memory.audience import Audience, Place, owners_of
from memory.conversations.summaries import owner_of
from memory.people.profile import Preferences, Profile, UserContext
from memory.people.profile_store import ProfileStore
from memory.sql import tables as t
from memory.sql.engine import Database
from memory.sql.messages import readable

LOT = 500
LATER = 1 << 62
"""More messages than there will be."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When and for whom a turn was."""

    user: str
    place: Place
    conversation: str
    at: datetime
    seq: int
    """Of what was said in it: everything from there on came later."""

    @property
    def audience(self) -> Audience:
        return Audience.of(self.user, self.place)

    @property
    def keys(self) -> frozenset[str]:
        """Whose memories matter: those that may be read, and those that may be written."""
        return self.audience.keys | owners_of(self.user, self.place)


class Told(ProfileStore):
    """The person's context as it was recorded."""

    def __init__(self, known: Mapping[str, Any], database: Database) -> None:
        super().__init__(database)
        self._known = UserContext(
            profile=Profile.model_validate(known.get("profile") or {}),
            preferences=Preferences.model_validate(known.get("preferences") or {}),
            conversation_themes=tuple(known.get("conversation_themes") or ()),
            memory_summary=known.get("memory_summary"),
        )

    async def view(self, user: str, place: Place) -> UserContext:
        return replace(self._known)


async def moment_of(pet: Companion, trace: Trace) -> Moment:
    summary = trace.summary
    place, seq = Place.of_key(summary.place), LATER
    async with pet.components.database.read() as connection:
        said = select(t.messages.c.seq).where(t.messages.c.id == summary.message_id)
        found = (await connection.execute(said)).scalar()
        if (
            found is None
        ):  # it was never heard, or the message is gone: what was said since is told by the time
            since = select(func.min(t.messages.c.seq)).where(t.messages.c.sent_at >= summary.started_at)
            found = (await connection.execute(since)).scalar()
    return Moment(str(summary.user), place, summary.conversation, summary.started_at, found or seq)


async def copy(
    pet: Companion, scratch: Companion, moment: Moment, trace: Trace, *, indexed: bool = True
) -> None:
    """Fill an empty archive, and its index."""
    async with pet.components.database.read() as source, scratch.components.database.write() as sink:
        copying = _Copying(source, sink, moment)
        await copying.transcript()
        await copying.memories()
        await copying.tasks(_scene(trace))
        await copying.summaries(_scene(trace))
        if any(span.kind == "documents" for span in trace.spans()) or _scene(trace).get("knowledge"):
            await copying.documents()
    if not indexed:
        return
    await scratch.components.sync.catch_up()
    if not await scratch.components.documents.empty():
        await scratch.components.documents.catch_up()


class _Copying:
    def __init__(self, source: AsyncConnection, sink: AsyncConnection, moment: Moment) -> None:
        self._source = source
        self._sink = sink
        self._moment = moment

    async def transcript(self) -> None:
        m = self._moment
        keys = m.keys
        await self._copy(t.users, t.users.c.id == m.user)
        await self._copy(t.speakers, t.speakers.c.owner.in_(keys))
        await self._copy(t.messages, readable(Audience(keys)), t.messages.c.seq < m.seq)

    async def memories(self) -> None:
        """Without what was learned later; what that had replaced holds again."""
        m, owners = self._moment, t.memory_owners
        ids = select(owners.c.memory_id).where(owners.c.owner.in_(m.keys))
        since = select(t.messages.c.id).where(t.messages.c.seq >= m.seq)
        later = t.memories.c.message_id.in_(since)
        gone = set(await self._source.scalars(select(t.memories.c.id).where(t.memories.c.id.in_(ids), later)))
        gone |= await self._came_of(gone, ids)
        await self._copy(t.memories, t.memories.c.id.in_(ids), besides={"id": gone})
        here = set(await self._sink.scalars(select(t.memories.c.id)))
        await self._copy(owners, owners.c.owner.in_(m.keys), only={"memory_id": here})
        aliases = t.memory_aliases
        await self._copy(aliases, aliases.c.owner.in_(m.keys), only={"memory_id": here})
        steps = t.memory_updates
        await self._copy(steps, steps.c.old_id.in_(ids), only={"old_id": here}, besides={"new_id": gone})
        await self._restore(gone)

    async def _came_of(self, gone: Collection[str], ids: Select[Any]) -> set[str]:
        """What has only replaced memories that there were not yet: a correction by hand of something learned
        later."""
        steps = t.memory_updates
        replaced: dict[str, set[str]] = {}
        query = select(steps.c.old_id, steps.c.new_id).where(steps.c.new_id.in_(ids))
        for step in (await self._source.execute(query)).all():
            if step.new_id and step.new_id != step.old_id:
                replaced.setdefault(step.new_id, set()).add(step.old_id)
        found: set[str] = set()
        while more := {new for new, old in replaced.items() if new not in found and old <= {*gone, *found}}:
            found |= more
        return found

    async def _restore(self, gone: Collection[str]) -> None:
        steps, owners = t.memory_updates, t.memory_owners
        for some in _lots(sorted(gone)):
            for step in (await self._source.execute(select(steps).where(steps.c.new_id.in_(some)))).all():
                held = (owners.c.memory_id == step.old_id) & owners.c.owner.in_(step.owners)
                await self._sink.execute(update(owners).where(held).values(superseded=0))

    async def tasks(self, scene: Mapping[str, Any]) -> None:
        """As they were recorded where they have changed since; else what was changed since counts as open."""
        m = self._moment
        recorded = {task["id"]: task for task in (scene.get("known") or {}).get("open_tasks", ())}
        query = select(t.tasks).where(t.tasks.c.user_id == m.user, t.tasks.c.created_at < m.at)
        rows = []
        for row in (await self._source.execute(query)).all():
            task = dict(row._mapping)
            if task["last_updated"] >= m.at:
                was = recorded.get(task["id"], {"status": "open"})
                task |= {"status": was["status"], "description": was.get("description", task["description"])}
                task |= {"due": _time(was.get("due")), "last_updated": task["created_at"]}
            rows.append(task)
        await self._put(t.tasks, rows)

    async def summaries(self, scene: Mapping[str, Any]) -> None:
        """Of this conversation the recorded one; of others those that have not changed since."""
        m, active = self._moment, t.active_conversations
        own = (active.c.conversation_id == m.conversation) & (active.c.owner == owner_of(m.user, m.place))
        await self._copy(active, active.c.owner.in_(m.keys), active.c.updated_at < m.at, ~own)
        found = (await self._source.execute(select(active).where(own))).first()
        if found is not None and (summary := scene.get("summary")):
            row = dict(found._mapping) | {"summary": summary, "updated_at": min(found.updated_at, m.at)}
            await self._put(active, [row])
        elif found is not None and found.mode:
            await self._put(active, [dict(found._mapping) | {"summary": "", "covered": 0}])

    async def documents(self) -> None:
        documents = t.knowledge_documents
        await self._copy(documents, documents.c.owner.in_(self._moment.audience.keys))
        here = set(await self._sink.scalars(select(documents.c.id)))
        await self._copy(t.knowledge_chunks, only={"document_id": here})

    async def _copy(
        self,
        table: Table,
        *conditions: ColumnElement[bool],
        only: Mapping[str, Collection[str]] | None = None,
        besides: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`only` rows whose column has one of these values, and none whose column has one of those."""
        query = select(table).where(*conditions)
        for column, values in (only or {}).items():
            if not values:
                query = query.where(false())
            elif len(values) <= LOT:
                query = query.where(table.c[column].in_(values))
        order = table.c.seq if "seq" in table.c else None
        result = await self._source.execute(query if order is None else query.order_by(order))
        rows = [dict(row._mapping) for row in result]
        kept = [
            row
            for row in rows
            if all(row[column] in values for column, values in (only or {}).items())
            and not any(row[column] in values for column, values in (besides or {}).items())
        ]
        await self._put(table, kept)

    async def _put(self, table: Table, rows: Iterable[dict[str, Any]]) -> None:
        fresh = [{**row, **({"indexed_under": None} if "indexed_under" in row else {})} for row in rows]
        for some in _lots(fresh):
            await self._sink.execute(insert(table), some)


def _scene(trace: Trace) -> Mapping[str, Any]:
    for span in trace.spans("scene"):
        return span.data.get("scene") or {}
    return {}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _lots(items: list[Any]) -> Iterable[list[Any]]:
    return (items[at : at + LOT] for at in range(0, len(items), LOT))
