"""Writes traces to SQL, lists them, and finds them by the beginning of an id."""

import json
import re
import zlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Insert, Table, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.errors import BadInput
from agent.tracing.filters import TraceFilter
from agent.tracing.serialization import MADE_BY_KEY, read_trace
from agent.tracing.store.rows import BATCH, conditions, is_withheld, to_row, to_summary
from agent.tracing.trace import CALL, FORGOTTEN, TURN, Summary, Trace, TraceWithJobs
from memory.audience import user_key
from memory.errors import NotFound
from memory.sql.engine import Database
from memory.sql.message_rows import kept
from memory.sql.tables import memory_owners, messages, trace_bodies, traces, users

LAST = "last"
_MADE_BY = "made_by_"
"""Prefix of the ids of the bodies that hold `made_by`."""


class Traces:
    def __init__(self, database: Database, people: Database | None = None) -> None:
        """`people` is the database of people and messages, if it is another one."""
        self.database = database
        self._people = people
        self._made_by: dict[str, Mapping[str, Any]] = {}
        """The stored values of `made_by` that this process knows, by key."""

    @property
    def where(self) -> str:
        """The name of the database, for messages."""
        return self.database.where

    async def write(
        self,
        written: Sequence[tuple[Summary, bytes]],
        now: datetime,
        stored: Collection[str] = (),
        made_by: tuple[str, Mapping[str, Any]] | None = None,
    ) -> int:
        """Insert or update traces; durable on return. Returns how many were written. Skips traces of people
        who were erased meanwhile, and traces whose ids are in `stored` (written before) and that have been
        deleted since. `made_by` is the key that these traces share, with its value."""
        async with self.database.write() as connection:
            if self._people is None:
                kept = await _not_erased(connection, written)
            else:
                async with self._people.read() as people:
                    kept = await _not_erased(people, written)
            if stored:
                query = select(traces.c.id).where(traces.c.id.in_(stored), ~is_withheld())
                gone = set(stored).difference(await connection.scalars(query))
                kept = [(summary, body) for summary, body in kept if summary.id not in gone]
            if not kept:
                return 0
            await connection.execute(
                self._upsert(traces, "id"), [to_row(summary, now) for summary, _ in kept]
            )
            bodies = [{"trace_id": summary.id, "body": body} for summary, body in kept]
            if made_by is not None and made_by[0] not in self._made_by:
                body = zlib.compress(json.dumps(made_by[1], ensure_ascii=False).encode())
                bodies.append({"trace_id": _MADE_BY + made_by[0], "body": body})
            await connection.execute(self._upsert(trace_bodies, "trace_id"), bodies)
        if made_by is not None:
            self._made_by[made_by[0]] = made_by[1]
        return len(kept)

    def _upsert(self, table: Table, key: str) -> Insert:
        new: Any = self.database.insert(table)
        values = {c.name: new.excluded[c.name] for c in table.c if c.name not in (key, "seq")}
        statement: Insert = new.on_conflict_do_update(index_elements=[key], set_=values)
        return statement

    async def list(
        self, wanted: TraceFilter, now: datetime, limit: int = 20, *, before: str | None = None
    ) -> list[Summary]:
        """Return traces newest first; with `before`, those older than the trace with this id."""
        query = select(traces).where(*conditions(wanted)).order_by(traces.c.seq.desc()).limit(limit)
        if before is not None:
            below = select(traces.c.seq).where(traces.c.id == before).scalar_subquery()
            query = query.where(traces.c.seq < below)
        found = [to_summary(row, now) for row in await self.database.rows(query)]
        return [one for one in found if not (wanted.failed and one.status == "running")]

    async def each(self, wanted: TraceFilter, now: datetime) -> AsyncIterator[Summary]:
        """Yield all matching traces, newest first, read in batches."""
        before: str | None = None
        while batch := await self.list(wanted, now, BATCH, before=before):
            for summary in batch:
                yield summary
            before = batch[-1].id

    async def count(self, wanted: TraceFilter) -> int:
        query = select(func.count()).select_from(traces).where(*conditions(wanted))
        return int((await self.database.rows(query))[0][0])

    async def find(self, id: str, now: datetime) -> Summary:
        """Return the trace with this id or beginning of an id; `last` is the newest turn. Raises NotFound,
        and BadInput if several ids match."""
        given = id.strip().lower().removeprefix("trace_")
        query = select(traces).order_by(traces.c.seq.desc()).limit(2)
        if given == LAST:
            query = query.where(traces.c.kind == TURN)
        elif re.fullmatch(r"[0-9a-f]{4,32}", given):
            query = query.where(traces.c.id.between(f"trace_{given}", f"trace_{given}g"))
        else:
            raise BadInput(f"{id!r} is no id of a trace; give its first characters (4 or more), or `last`")
        rows = await self.database.rows(query)
        if not rows:
            raise NotFound("there is no trace yet" if given == LAST else f"there is no trace {id!r}")
        if len(rows) > 1 and given != LAST and len(given) < 32:
            raise BadInput(f"several traces begin with {id!r}; give more of the id")
        return to_summary(rows[0], now)

    async def get(self, id: str, now: datetime) -> Trace:
        """Return the whole trace. Raises NotFound and BadInput as `find` does."""
        summary = await self.find(id, now)
        body = await self._body(summary.id)
        if summary.status == FORGOTTEN:
            raise NotFound(f"the trace {summary.short} is forgotten: it showed what a person had forgotten")
        if body is None:
            raise NotFound(f"the trace {summary.short} has just been deleted")
        return await self._read(summary, body)

    async def get_with_jobs(self, id: str, now: datetime) -> TraceWithJobs:
        trace = await self.get(id, now)
        return TraceWithJobs(trace, await self.after(trace.id, now))

    async def after(self, turn_id: str, now: datetime) -> Sequence[Trace]:
        """Return the background jobs that followed a turn, in order."""
        query = (
            select(traces, trace_bodies.c.body)
            .join(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
            .where(traces.c.turn_id == turn_id, ~is_withheld())
            .order_by(traces.c.seq)
        )
        return [await self._read(to_summary(row, now), row.body) for row in await self.database.rows(query)]

    async def _read(self, summary: Summary, body: bytes) -> Trace:
        """Decode a trace. Raises BadInput if its body cannot be read."""
        trace = read_trace(summary, body)
        key = trace.made_by[MADE_BY_KEY]
        if key not in self._made_by and (made_by := await self._body(f"{_MADE_BY}{key}")):
            self._made_by[key] = json.loads(zlib.decompress(made_by))
        return replace(trace, made_by=self._made_by.get(key, {}))

    async def _body(self, id: str) -> bytes | None:
        rows = await self.database.rows(select(trace_bodies.c.body).where(trace_bodies.c.trace_id == id))
        return rows[0].body if rows else None


async def _not_erased(
    connection: AsyncConnection, written: Sequence[tuple[Summary, bytes]]
) -> list[tuple[Summary, bytes]]:
    """Return the traces without turns whose message was deleted or forgotten, and without background jobs
    and calls whose person was erased. A person who only ever called tools is known by their memories."""
    rests_on = [(messages, one.message_id) if one.kind == TURN else (users, one.user) for one, _ in written]
    here: set[str | None] = {None}
    for table, condition in ((messages, kept()), (users, true())):
        if ids := {id for needed, id in rests_on if needed is table and id}:
            there = select(table.c.id).where(table.c.id.in_(ids), condition)
            here |= set(await connection.scalars(there))
    if keys := {user_key(one.user): one.user for one, _ in written if one.kind == CALL and one.user}:
        owners = select(memory_owners.c.owner).where(memory_owners.c.owner.in_(keys)).distinct()
        here |= {keys[owner] for owner in await connection.scalars(owners)}
    return [pair for pair, (_, id) in zip(written, rests_on, strict=True) if id in here]
