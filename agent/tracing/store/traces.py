"""Writes traces to SQL, lists them, and finds them by the beginning of an id."""

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update

from agent.errors import BadInput
from agent.tracing.serialization import MADE_BY_KEY, StoredTrace, read_trace
from agent.tracing.store.filters import TraceFilter
from agent.tracing.store.rows import (
    BATCH,
    as_bytes,
    conditions,
    delete_bodies,
    holds,
    inside,
    not_erased,
    note_rows,
    to_row,
    to_summary,
    upsert,
)
from agent.tracing.trace import CALL, TURN, Summary, Trace, TraceWithJobs, Work, mappings
from agent.types import Usage
from agent.types.arguments import Instant, Limit, ShortText, ShortTexts
from agent.types.checks import checks_arguments
from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.process.breaker import utc_now
from memory.sql.engine import Database
from memory.sql.hidden import is_not_to_be_shown
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.reply_sources import stated_by_others
from memory.sql.messages.transcript import Transcript
from memory.sql.tables import trace_bodies, trace_rows, traces
from memory.sql.tables.columns import as_uuid

LAST = "last"
TURNS = TraceFilter()
_MADE_BY = "made_by_"
"""Prefix of the ids of the bodies that hold `made_by`."""
_HAS_BODY = exists().where(trace_bodies.c.trace_id == traces.c.id).correlate(traces).label("has_body")
_SUMMARIES = select(traces, _HAS_BODY)
_WITH_BODIES = _SUMMARIES.add_columns(trace_bodies.c.body).join(
    trace_bodies, trace_bodies.c.trace_id == traces.c.id
)


@checks_arguments
class Traces:
    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database, self._clock = database, clock
        self._made_by: dict[str, Mapping[str, Any]] = {}
        """The stored values of `made_by` that this process knows, by key."""

    async def write(
        self,
        written: Sequence[StoredTrace],
        now: Instant,
        stored: ShortTexts = (),
        made_by: tuple[str, Mapping[str, Any]] | None = None,
    ) -> int:
        """Insert or update traces; they are stored on return. Returns how many were written. `stored` has the
        ids of traces that were written before: those deleted since are skipped, and those emptied since are
        written without content. Traces of erased people are skipped too. `made_by` is the traces' common key,
        with its value."""
        async with self.database.write() as connection:
            kept = await not_erased(connection, written)
            if stored:
                query = select(traces.c.id, _HAS_BODY).where(traces.c.id.in_(stored))
                has_body = {row.id: row.has_body for row in await connection.execute(query)}
                kept = [one for one in kept if one.summary.id in has_body or one.summary.id not in stored]
                kept = [one if has_body.get(one.summary.id, True) else one.without_content() for one in kept]
            if not kept:
                return 0
            rows = [to_row(one.summary, now) for one in kept]
            written_rows = (await connection.execute(upsert(traces, "id"), rows)).all()
            bodies = [{"trace_id": one.summary.id, "body": one.body} for one in kept if one.body is not None]
            if made_by is not None and made_by[0] not in self._made_by:
                body = zlib.compress(json.dumps(made_by[1], ensure_ascii=False).encode())
                bodies.append({"trace_id": _MADE_BY + made_by[0], "body": body})
            if bodies:
                await connection.execute(upsert(trace_bodies, "trace_id"), bodies)
            if emptied := [id for one in kept if one.body is None and (id := one.summary.id) in stored]:
                await delete_bodies(connection, emptied)  # an earlier write stored a body
            await note_rows(connection, {row.id: row.seq for row in written_rows}, kept)
        if made_by is not None:
            self._made_by[made_by[0]] = made_by[1]
        return len(kept)

    async def showing(self, ids: ShortTexts, user: ShortText) -> int:
        """Count the traces that show one of these rows: those of the user's turns, of turns in places, and of
        the jobs after them. Traces of calls are not counted, because they show a person only their own
        actions."""
        rows, found = sorted(filter(None, map(as_bytes, ids))), set[int]()
        shown = select(trace_rows.c.trace).join(traces, traces.c.seq == trace_rows.c.trace)
        for at in range(0, len(rows), BATCH):
            query = shown.where(trace_rows.c.row_id.in_(rows[at : at + BATCH]), traces.c.kind != CALL)
            query = query.where(or_(traces.c.place != "", traces.c.user_id == user))
            found |= {row.trace for row in await self.database.rows(query)}
        return len(found)

    async def shows_others(self, about: Summary, accounts: ShortTexts = ()) -> bool:
        """Return whether a private trace shows what others stated, in places or on accounts other than the
        linked `accounts`. The person may have lost access to it, so only the operator may read the trace."""
        if about.place or about.user is None:
            return False
        shown = select(as_uuid(trace_rows.c.row_id).label("id"))
        shown = shown.join(traces, traces.c.seq == trace_rows.c.trace).where(traces.c.id == about.id)
        ids = [row.id for row in await self.database.rows(shown)]
        return bool(await stated_by_others(self.database, ids, (about.user, *accounts)))

    async def forget(self, ids: ShortTexts) -> int:
        """Empty the traces that show one of these rows. Times, tokens and outcomes stay. Returns how many
        were emptied."""
        emptied, rows = 0, sorted(filter(None, map(as_bytes, ids)))
        for at in range(0, len(rows), BATCH):
            part = rows[at : at + BATCH]
            showing = select(trace_rows.c.trace).where(trace_rows.c.row_id.in_(part))
            async with self.database.write() as connection:
                found = select(traces.c.id).where(traces.c.seq.in_(showing))
                empty = list(await connection.scalars(found))
                await delete_bodies(connection, empty)
                gone = update(traces).where(traces.c.id.in_(empty))
                await connection.execute(gone.values(said="", reply="", error=None))
            emptied += len(empty)
        await self.database.empty_log()
        return emptied

    async def prune(self, before: Instant) -> int:
        """Delete traces that began before that time. Returns how many were deleted."""
        return await self._delete(traces.c.started_at < before)

    async def places_of(self, user: ShortText) -> set[str]:
        """Return the keys of the places where a person wrote."""
        query = select(traces.c.place).where(traces.c.user_id == user, traces.c.place != "").distinct()
        return {row.place for row in await self.database.rows(query)}

    async def erase(self, user: ShortText, places: ShortTexts) -> int:
        """Delete a person's traces, and those of `places`, whose prompts contain what the person wrote there.
        Returns how many were deleted."""
        gone = await self._delete(or_(traces.c.user_id == user, *(inside(place) for place in places)))
        await self.database.empty_log()
        return gone

    async def _delete(self, condition: ColumnElement[bool]) -> int:
        gone = 0
        while True:
            async with self.database.write() as connection:
                ids = list(await connection.scalars(select(traces.c.id).where(condition).limit(BATCH)))
                await delete_bodies(connection, ids)
                await connection.execute(delete(traces).where(traces.c.id.in_(ids)))
            gone += len(ids)
            if len(ids) < BATCH:
                return gone

    async def _summaries(self, rows: Sequence[Any], now: Instant) -> "list[Summary]":
        """Return the summaries of these rows, without the content of traces that show a hidden row."""
        hidden = await self._hidden([row.seq for row in rows]) if rows else set()
        names = await Transcript(self.database).speakers.names({row.user_id for row in rows if row.user_id})
        work = await self._work([row.id for row in rows if row.kind == TURN])
        return [
            replace(
                to_summary(row, now, hidden=row.seq in hidden),
                name=names.get(row.user_id, ""),
                work=work.get(row.id, ()),
            )
            for row in rows
        ]

    async def _hidden(self, numbers: Sequence[int]) -> set[int]:
        """Return which of these traces, by `seq`, show a hidden row."""
        rows = select(trace_rows.c.trace, as_uuid(trace_rows.c.row_id).label("id"))
        shown = rows.where(trace_rows.c.trace.in_(numbers)).cte("shown").prefix_with("MATERIALIZED")
        hidden = select(shown.c.trace).where(is_not_to_be_shown(shown.c.id)).distinct()
        return {row.trace for row in await self.database.rows(hidden)}

    async def list(
        self,
        wanted: TraceFilter = TURNS,
        now: Instant | None = None,
        limit: Limit = 20,
        *,
        before: ShortText | None = None,
    ) -> "list[Summary]":
        """Return traces newest first; with `before`, those older than the trace with this id."""
        now = now or self._clock()
        found: list[Summary] = []
        while True:
            rows, last = await self._page(wanted, limit, before)
            page = await self._summaries(rows, now)
            found += [one for one in page if not (wanted.failed and one.status == "running")]
            if not wanted.text:
                return found
            found = [one for one in found if one.content == "kept"][:limit]
            if last is None or len(found) >= limit:
                return found
            before = last

    async def _page(
        self, wanted: TraceFilter, limit: int, before: str | None
    ) -> tuple[Sequence[Any], str | None]:
        """Return up to `limit` rows, newest first, and the id of the last row read if there may be more. If
        the filter has a text, return the rows of one batch that contain it."""
        select_from, most = (_SUMMARIES, limit) if not wanted.text else (_WITH_BODIES, BATCH)
        query = select_from.where(*conditions(wanted)).order_by(traces.c.seq.desc()).limit(most)
        if before is not None:
            below = select(traces.c.seq).where(traces.c.id == before).scalar_subquery()
            query = query.where(traces.c.seq < below)
        rows = await self.database.rows(query)
        last = rows[-1].id if len(rows) == most else None
        if text := wanted.text:
            rows = await asyncio.to_thread(lambda: [row for row in rows if holds(row, text)])
        return rows, last

    async def _work(self, turns: Collection[str]) -> dict[str, tuple[Work, ...]]:
        """Return the jobs that followed these turns, by the turn's id."""
        found: dict[str, tuple[Work, ...]] = {}
        query = select(traces).where(traces.c.turn_id.in_(turns)).order_by(traces.c.seq)
        for row in await self.database.rows(query) if turns else ():
            usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens)
            done = Work(row.kind, row.status, row.model, usage)
            found[row.turn_id] = (*found.get(row.turn_id, ()), done)
        return found

    async def each(self, wanted: TraceFilter, now: Instant) -> AsyncIterator[Summary]:
        """Yield all matching traces, newest first, read in batches."""
        before: str | None = None
        while batch := await self.list(wanted, now, BATCH, before=before):
            for summary in batch:
                yield summary
            before = batch[-1].id

    async def count(self, wanted: TraceFilter) -> int:
        query = select(func.count()).select_from(traces).where(*conditions(wanted))
        return int((await self.database.rows(query))[0][0])

    async def find(self, id: ShortText, now: Instant | None = None) -> Summary:
        """Return the summary of the trace whose id is or begins with `id`; `last` is the newest turn. Raises
        NotFound, and BadInput if several ids match."""
        given = id.strip().lower().removeprefix("trace_")
        query = _SUMMARIES.order_by(traces.c.seq.desc()).limit(2)
        if given == LAST:
            query = query.where(traces.c.kind == TURN)
        elif re.fullmatch(r"[0-9a-f]{4,32}", given):
            query = query.where(traces.c.id.between(f"trace_{given}", f"trace_{given}g"))
        else:
            raise BadInput(f"{id!r} is no id of a trace; pass its first 4 characters or more, or `last`")
        rows = await self.database.rows(query)
        if not rows:
            raise NotFound("there is no trace yet" if given == LAST else f"there is no trace {id!r}")
        if len(rows) > 1 and given != LAST and len(given) < 32:
            raise BadInput(f"several traces begin with {id!r}; give more of the id")
        return (await self._summaries(rows[:1], now or self._clock()))[0]

    async def get(self, id: ShortText, now: Instant | None = None) -> Trace:
        """Return the whole trace. Raises NotFound and BadInput as `find` does."""
        summary = await self.find(id, now)
        if summary.content != "kept":
            for_now = " for now" if summary.content == "hidden" else ""
            why = "it showed what a person had forgotten"
            raise NotFound(f"the content of the trace {summary.short} is forgotten{for_now}: {why}")
        body = await self._body(summary.id)
        if body is None:
            raise NotFound(f"the trace {summary.short} has just been deleted")
        return await self._read(summary, body)

    async def get_with_jobs(self, id: ShortText, now: Instant | None = None) -> TraceWithJobs:
        """Return the trace with the background jobs that followed it."""
        trace = await self.get(id, now)
        return TraceWithJobs(trace, await self.after(trace.id, now))

    async def after(self, turn_id: ShortText, now: Instant | None = None) -> Sequence[Trace]:
        """Return the background jobs that followed a turn, in order."""
        query = _WITH_BODIES.where(traces.c.turn_id == turn_id).order_by(traces.c.seq)
        rows = await self.database.rows(query)
        pairs = zip(await self._summaries(rows, now or self._clock()), rows, strict=True)
        return [await self._read(one, row.body) for one, row in pairs if one.content == "kept"]

    async def add_skipped_texts(self, trace: Trace, now: Instant) -> None:
        """Add the texts of candidates that a search left out, if the turn's audience may read them now. A
        trace stores only their ids."""
        left_out: list[Any] = [
            one
            for search in trace.spans("search")
            for one in mappings(search.data.get("candidates"))
            if one.get("left_out")
        ]
        ids = {one["id"] for one in left_out}
        audience = Audience.of(trace.summary.user, Place.of_key(trace.summary.place))
        facts, said = MemoryStore(self.database), Transcript(self.database)
        found = {id: one.content for id, one in (await facts.by_ids(ids, audience, now)).items()}
        found |= {id: one.text for id, one in (await said.by_ids(ids, audience)).items()}
        for one in left_out:
            one["content"] = found.get(one["id"])

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
