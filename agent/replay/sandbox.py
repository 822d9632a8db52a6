"""Copies memory to replay a turn on it.

The copy holds what the turn's audience may read today, without what was said or learned from that turn on.
Corrections by hand stay. What is overwritten in place (the person's context, tasks, the summary) comes from
the trace if it has changed since.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.companion import Companion
from agent.tracing.trace import Summary, Trace, read_data
from memory.audience import Audience, Place, owners_of
from memory.sql import tables as t
from memory.sql.memories import tag_in
from memory.sql.message_rows import readable
from memory.sql.summaries import owner_of

Row = dict[str, Any]

AFTER_ALL = 1 << 62
"""Larger than any sequence number."""


async def copy_memories(pet: Companion, trace: Trace, sandbox: Companion, *, index: bool = True) -> None:
    """Fill an empty companion, and its index unless `index` is off."""
    context = recorded_context(trace)
    async with pet.components.database.read() as source, sandbox.components.database.write() as sink:
        copy = await _Copy.begin(source, sink, trace)
        await copy.transcript()
        await copy.memories()
        await copy.tasks(context)
        await copy.summaries(context)
        if context.get("knowledge") or any(trace.spans("documents")):
            await copy.documents()
    if index:
        await build_index(sandbox)


async def build_index(sandbox: Companion) -> None:
    await sandbox.components.sync.catch_up(anew=True)


def recorded_context(trace: Trace) -> Mapping[str, Any]:
    """Return what was looked up before the first model call; empty if it was not recorded."""
    return next((read_data(span, "scene") for span in trace.spans("scene")), None) or {}


@dataclass(frozen=True, slots=True)
class _Copy:
    """Copies what one turn could read or write, as it was when the turn began."""

    source: AsyncConnection
    sink: AsyncConnection
    summary: Summary
    audience: Audience
    keys: frozenset[str]
    """Owners of the data that the turn could read or write."""
    seq: int
    """The sequence number of the turn's message. It and all later messages are left out."""

    @classmethod
    async def begin(cls, source: AsyncConnection, sink: AsyncConnection, trace: Trace) -> "_Copy":
        summary, seq = trace.summary, t.messages.c.seq
        own = await source.scalar(select(seq).where(t.messages.c.id == summary.message_id))
        if own is None:  # the message was not stored, or was deleted
            own = await source.scalar(select(func.min(seq)).where(t.messages.c.sent_at >= summary.started_at))
        user, place = str(summary.user), Place.of_key(summary.place)
        audience = Audience.of(user, place)
        return cls(source, sink, summary, audience, audience.keys | owners_of(user, place), own or AFTER_ALL)

    async def transcript(self) -> None:
        await self._copy(t.users, t.users.c.id == self.summary.user)
        await self._copy(t.speakers, t.speakers.c.owner.in_(self.keys))
        await self._copy(t.messages, readable(Audience(self.keys)), t.messages.c.seq < self.seq)

    async def memories(self) -> None:
        """Copy the memories without those learned later; memories that these replaced become active again."""
        owners, aliases = t.memory_owners, t.memory_aliases
        ids = select(owners.c.memory_id).where(owners.c.owner.in_(self.keys))
        later = select(t.messages.c.id).where(t.messages.c.seq >= self.seq)
        learned = select(t.memories.c.id).where(t.memories.c.id.in_(ids), t.memories.c.message_id.in_(later))
        gone = set(await self.source.scalars(learned))
        gone |= await self._corrections_of(gone, ids)
        await self._copy(t.memories, t.memories.c.id.in_(ids), keep=lambda row: row["id"] not in gone)
        here = set(await self.sink.scalars(select(t.memories.c.id)))
        for table in (owners, aliases):
            await self._copy(table, table.c.owner.in_(self.keys), keep=lambda row: row["memory_id"] in here)
        again = update(owners).where(owners.c.superseded_by.in_(gone))
        await self.sink.execute(again.values(superseded_by=None, superseded_at=None, reason=None))

    async def _corrections_of(self, gone: Collection[str], ids: Select[Any]) -> set[str]:
        """Return memories that replaced only memories in `gone`, and corrections of those."""
        owners = t.memory_owners
        replaced: dict[str, set[str]] = {}
        query = select(owners.c.memory_id, owners.c.superseded_by).where(owners.c.superseded_by.in_(ids))
        for link in (await self.source.execute(query)).all():
            if link.superseded_by != link.memory_id:
                replaced.setdefault(link.superseded_by, set()).add(link.memory_id)
        found: set[str] = set()
        while more := {new for new, old in replaced.items() if new not in found and old <= {*gone, *found}}:
            found |= more
        return found

    async def tasks(self, context: Mapping[str, Any]) -> None:
        """Copy the tasks. Tasks that changed since get their recorded state; they are open if the trace does
        not show them."""
        began = self.summary.started_at
        recorded = {task["id"]: task for task in (context.get("known") or {}).get("open_tasks", ())}
        query = select(t.tasks).where(t.tasks.c.user_id == self.summary.user, t.tasks.c.created_at < began)
        rows = []
        for row in (await self.source.execute(query)).all():
            task = dict(row._mapping)
            if task["last_updated"] >= began:
                was = {"status": "open", "description": task["description"]} | recorded.get(task["id"], {})
                due = datetime.fromisoformat(was["due"]) if was.get("due") else None
                task |= {name: was[name] for name in ("status", "description")}
                task |= {"due": due, "last_updated": task["created_at"]}
            rows.append(task)
        await insert_rows(self.sink, t.tasks, rows)

    async def summaries(self, context: Mapping[str, Any]) -> None:
        """Copy the recorded summary of this conversation, and the summaries of others that have not changed
        since."""
        active, began = t.active_conversations, self.summary.started_at
        owner = owner_of(str(self.summary.user), Place.of_key(self.summary.place))
        own = (active.c.conversation_id == self.summary.conversation) & (active.c.owner == owner)
        await self._copy(active, active.c.owner.in_(self.keys), active.c.updated_at < began, ~own)
        found = (await self.source.execute(select(active).where(own))).first()
        if found is not None and (summary := context.get("summary")):
            changed = {"summary": summary, "updated_at": min(found.updated_at, began)}
            await insert_rows(self.sink, active, [{**found._mapping, **changed}])
        elif found is not None and found.mode:
            await insert_rows(self.sink, active, [{**found._mapping, "summary": "", "covered": 0}])

    async def documents(self) -> None:
        documents = t.knowledge_documents
        await self._copy(documents, documents.c.owner.in_(self.audience.keys))
        readable_ids = select(documents.c.id).where(documents.c.owner.in_(self.audience.keys))
        await self._copy(t.knowledge_chunks, t.knowledge_chunks.c.document_id.in_(readable_ids))

    async def _copy(
        self,
        table: Table,
        *conditions: ColumnElement[bool],
        keep: Callable[[Row], bool] = lambda row: True,
    ) -> list[Row]:
        """Copy the rows that match the conditions and for which `keep` is true. Returns the other matching
        rows too."""
        query = select(table).where(*conditions)
        if "seq" in table.c:
            query = query.order_by(table.c.seq)
        rows = [dict(row._mapping) for row in await self.source.execute(query)]
        await insert_rows(self.sink, table, filter(keep, rows))
        return rows


async def insert_rows(connection: AsyncConnection, table: Table, rows: Iterable[Row]) -> None:
    """Insert the rows, and the tags of memories."""
    values = list(rows)
    if values:
        await connection.execute(insert(table), values)
    for row in values if table is t.memories else ():
        await tag_in(connection, row["id"], row["subjects"])
