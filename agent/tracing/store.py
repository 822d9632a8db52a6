"""Stores traces in SQL: lists them, finds them by the beginning of an id, prunes and erases them."""

import asyncio
import json
import os
import re
import socket
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    Row,
    Select,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.errors import BadInput
from agent.tracing.serialization import MADE_BY_KEY, read_trace, texts_of
from agent.tracing.trace import FORGOTTEN, TURN, Status, Summary, Trace, TraceWithJobs
from agent.types import Usage
from memory.audience import GLOBAL
from memory.erasure.repetition import ForgottenData
from memory.errors import NotFound
from memory.sql.engine import Database
from memory.sql.messages import kept
from memory.sql.tables import messages, trace_bodies, traces, users

BATCH = 500
"""Rows to read at a time, or to delete in one transaction."""
LAST = "last"
LONGEST_TURN = timedelta(minutes=15)
"""An unfinished trace that was not written again for this long counts as killed."""
_MADE_BY = "made_by_"
"""Prefix of the ids of the bodies that hold `made_by`."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Selects the traces that match every given condition."""

    user: str | None = None
    place: str | None = None
    """The key of a place; places inside it match too. Empty means private."""
    tool: str | None = None
    failed: bool = False
    """Whether to select only turns that failed, were killed or had a failing tool."""
    text: str | None = None
    """Part of the stored beginning of the message or the reply, in any letter case."""
    since: datetime | None = None
    slower: float | None = None
    """The minimum duration in seconds."""
    kinds: frozenset[str] = frozenset({TURN})
    """Empty selects every kind."""


class Traces:
    def __init__(self, database: Database, people: Database | None = None) -> None:
        """`people` is the database of people and messages, if it is another one."""
        self._database = database
        self._people = people
        self._made_by: dict[str, Mapping[str, Any]] = {}
        """The stored values of `made_by` that this process knows, by key."""

    @property
    def database(self) -> Database:
        return self._database

    @property
    def where(self) -> str:
        """The name of the database, for messages."""
        return self._database.where

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
        async with self._database.write() as connection:
            if self._people is None:
                kept = await _not_erased(connection, written)
            else:
                async with self._people.read() as people:
                    kept = await _not_erased(people, written)
            if stored:
                query = select(traces.c.id).where(traces.c.id.in_(stored), traces.c.status != FORGOTTEN)
                gone = set(stored).difference(await connection.scalars(query))
                kept = [(summary, body) for summary, body in kept if summary.id not in gone]
            if not kept:
                return 0
            await connection.execute(self._upsert(traces, "id"), [_row(summary, now) for summary, _ in kept])
            bodies = [{"trace_id": summary.id, "body": body} for summary, body in kept]
            if made_by is not None and made_by[0] not in self._made_by:
                body = zlib.compress(json.dumps(made_by[1], ensure_ascii=False).encode())
                bodies.append({"trace_id": _MADE_BY + made_by[0], "body": body})
            await connection.execute(self._upsert(trace_bodies, "trace_id"), bodies)
        if made_by is not None:
            self._made_by[made_by[0]] = made_by[1]
        return len(kept)

    def _upsert(self, table: Table, key: str) -> Insert:
        new: Any = self._database.insert(table)
        values = {c.name: new.excluded[c.name] for c in table.c if c.name not in (key, "seq")}
        statement: Insert = new.on_conflict_do_update(index_elements=[key], set_=values)
        return statement

    async def list(
        self, wanted: TraceFilter, now: datetime, limit: int = 20, *, before: str | None = None
    ) -> list[Summary]:
        """Return traces newest first; with `before`, those older than the trace with this id."""
        query = select(traces).where(*_conditions(wanted)).order_by(traces.c.seq.desc()).limit(limit)
        if before is not None:
            below = select(traces.c.seq).where(traces.c.id == before).scalar_subquery()
            query = query.where(traces.c.seq < below)
        found = [_summary(row, now) for row in await self._rows(query)]
        return [one for one in found if not (wanted.failed and one.status == "running")]

    async def each(self, wanted: TraceFilter, now: datetime) -> AsyncIterator[Summary]:
        """Yield all matching traces, newest first, read in batches."""
        before: str | None = None
        while batch := await self.list(wanted, now, BATCH, before=before):
            for summary in batch:
                yield summary
            before = batch[-1].id

    async def count(self, wanted: TraceFilter) -> int:
        query = select(func.count()).select_from(traces).where(*_conditions(wanted))
        return int((await self._rows(query))[0][0])

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
        rows = await self._rows(query)
        if not rows:
            raise NotFound("there is no trace yet" if given == LAST else f"there is no trace {id!r}")
        if len(rows) > 1 and given != LAST and len(given) < 32:
            raise BadInput(f"several traces begin with {id!r}; give more of the id")
        return _summary(rows[0], now)

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
            .where(traces.c.turn_id == turn_id)
            .order_by(traces.c.seq)
        )
        return [await self._read(_summary(row, now), row.body) for row in await self._rows(query)]

    async def _read(self, summary: Summary, body: bytes) -> Trace:
        """Decode a trace. Raises BadInput if its body cannot be read."""
        trace = read_trace(summary, body)
        key = trace.made_by[MADE_BY_KEY]
        if key not in self._made_by and (made_by := await self._body(f"{_MADE_BY}{key}")):
            self._made_by[key] = json.loads(zlib.decompress(made_by))
        return replace(trace, made_by=self._made_by.get(key, {}))

    async def _body(self, id: str) -> bytes | None:
        rows = await self._rows(select(trace_bodies.c.body).where(trace_bodies.c.trace_id == id))
        return rows[0].body if rows else None

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        async with self._database.read() as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
        return rows

    async def prune(self, before: datetime) -> int:
        """Delete traces that began before that time. Returns how many were deleted."""
        return await self._delete(traces.c.started_at < before)

    async def places_of(self, user: str) -> set[str]:
        """Return the keys of the places where a person spoke."""
        query = select(traces.c.place).where(traces.c.user_id == user, traces.c.place != "").distinct()
        return {row.place for row in await self._rows(query)}

    async def erase(self, user: str, places: Collection[str] = ()) -> int:
        """Delete a person's traces, and those of `places`, whose prompts contain what the person said there.
        Returns how many were deleted."""
        gone = await self._delete(or_(traces.c.user_id == user, *(_inside(place) for place in places)))
        await self._database.empty_log()
        return gone

    async def erase_holding(self, sought: Sequence[bytes]) -> int:
        """Delete every trace whose content holds one of these texts. Returns how many were deleted."""
        query = (
            select(traces.c.seq, traces.c.id, traces.c.said, traces.c.reply, traces.c.error)
            .add_columns(trace_bodies.c.body)
            .join(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
            .order_by(traces.c.seq)
            .limit(BATCH)
        )
        erased, after = 0, 0
        while sought and (rows := await self._rows(query.where(traces.c.seq > after))):
            found = await asyncio.to_thread(_holding, rows, sought)
            erased += await self._delete(traces.c.id.in_(found)) if found else 0
            after = rows[-1].seq
        return erased

    async def forget(self, data: ForgottenData, user: str, owners: Collection[str], since: datetime) -> int:
        """Empty the traces since then that show forgotten data: those of the turns of its messages, and those
        of `user` and of the places among `owners` whose content shows it. Their figures stay. Returns how
        many were emptied."""
        places = [owner for owner in owners if owner.startswith("place:")]
        theirs = [traces.c.user_id == user, *map(_inside, places), *([true()] if GLOBAL in owners else [])]
        query = (
            select(traces.c.seq, traces.c.id, traces.c.said, traces.c.reply, traces.c.error)
            .add_columns(traces.c.message_id, trace_bodies.c.body)
            .outerjoin(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
            .where(or_(*theirs), traces.c.started_at >= since, traces.c.status != FORGOTTEN)
            .order_by(traces.c.seq)
            .limit(BATCH)
        )
        emptied, last = 0, 0
        while rows := await self._rows(query.where(traces.c.seq > last)):
            last = rows[-1].seq
            emptied += await self._empty(await asyncio.to_thread(_showing, rows, data))
        await self._database.empty_log()
        return emptied

    async def _empty(self, ids: Collection[str]) -> int:
        if not ids:
            return 0
        emptied = update(traces).where(traces.c.id.in_(ids))
        async with self._database.write() as connection:
            await connection.execute(delete(trace_bodies).where(trace_bodies.c.trace_id.in_(ids)))
            await connection.execute(emptied.values(said="", reply="", error=None, status=FORGOTTEN))
        return len(ids)

    async def _delete(self, condition: ColumnElement[bool]) -> int:
        gone = 0
        while True:
            async with self._database.write() as connection:
                ids = list(await connection.scalars(select(traces.c.id).where(condition).limit(BATCH)))
                await connection.execute(delete(trace_bodies).where(trace_bodies.c.trace_id.in_(ids)))
                await connection.execute(delete(traces).where(traces.c.id.in_(ids)))
            gone += len(ids)
            if len(ids) < BATCH:
                return gone


def _holding(rows: Sequence[Row[Any]], sought: Sequence[bytes]) -> list[str]:
    return [row.id for row in rows if _holds(row, sought)]


def _holds(row: Any, sought: Sequence[bytes]) -> bool:
    with suppress(zlib.error):
        content = " ".join((row.said, row.reply, row.error or "")).encode("utf-8", "surrogatepass")
        content += zlib.decompress(row.body)
        return any(text in content for text in sought)
    return False


def _showing(rows: Sequence[Row[Any]], data: ForgottenData) -> list[str]:
    return [row.id for row in rows if _shows(row, data)]


def _shows(row: Any, data: ForgottenData) -> bool:
    """Whether the row of a trace, or its body, shows the forgotten data."""
    if row.message_id in data.ids:
        return True
    try:
        texts = [row.said, row.reply, row.error or "", *(texts_of(row.body) if row.body else ())]
    except (zlib.error, ValueError):  # nobody can tell what an unreadable body shows
        return True
    return any(data.may_be_shown_by(text) for text in texts)


async def _not_erased(
    connection: AsyncConnection, written: Sequence[tuple[Summary, bytes]]
) -> list[tuple[Summary, bytes]]:
    """Return the traces without turns whose message was deleted or forgotten, and without background jobs
    whose person was erased."""
    rests_on = [(messages, one.message_id) if one.kind == TURN else (users, one.user) for one, _ in written]
    here: set[str | None] = {None}
    for table, condition in ((messages, kept()), (users, true())):
        if ids := {id for needed, id in rests_on if needed is table and id}:
            there = select(table.c.id).where(table.c.id.in_(ids), condition)
            here |= set(await connection.scalars(there))
    return [pair for pair, (_, id) in zip(written, rests_on, strict=True) if id in here]


def _conditions(wanted: TraceFilter) -> Iterator[ColumnElement[bool]]:
    c = traces.c
    if wanted.kinds:
        yield c.kind.in_(sorted(wanted.kinds))
    if wanted.user is not None:
        yield c.user_id == wanted.user
    if wanted.place is not None:
        yield _inside(wanted.place) if wanted.place else c.place == ""
    if wanted.tool:
        yield or_(*(c.tools.contains(f" {wanted.tool}{end}", autoescape=True) for end in (" ", "! ")))
    if wanted.failed:
        maybe_killed = and_(c.status == "running", c.process != this_process())
        yield or_(c.status.in_(["error", "tool_error"]), maybe_killed)
    if wanted.text:
        yield or_(*(part.icontains(wanted.text, autoescape=True) for part in (c.said, c.reply)))
    if wanted.since is not None:
        yield c.started_at >= wanted.since
    if wanted.slower is not None:
        yield c.took >= wanted.slower


def _inside(place: str) -> ColumnElement[bool]:
    return or_(traces.c.place == place, traces.c.place.startswith(f"{place}/", autoescape=True))


_STORED = {one.name for one in fields(Summary)} - {"tools", "usage"}
_COLUMNS = {name: name for name in _STORED} | {"user": "user_id", "conversation": "conversation_id"}
"""Fields of a Summary that are stored unchanged, and their columns."""


def _row(summary: Summary, now: datetime) -> dict[str, Any]:
    row = {column: getattr(summary, field) for field, column in _COLUMNS.items()}
    row |= {"written_at": now, "tools": "".join(f" {name}" for name in summary.tools) + " "}
    return row | {f"{name}_tokens": number for name, number in asdict(summary.usage).items()}


def _summary(row: Any, now: datetime) -> Summary:
    """Return the summary, as `killed` instead of `running` if its process is gone."""
    status: Status = row.status
    if status == "running" and (now - row.written_at > LONGEST_TURN or _is_gone(row.process)):
        status = "killed"
    unchanged = {field: getattr(row, column) for field, column in _COLUMNS.items()}
    usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens)
    return Summary(**unchanged | {"status": status}, tools=tuple(row.tools.split()), usage=usage)


def _is_gone(process: str) -> bool:
    host, _, numbers = process.rpartition(":")
    return host == socket.gethostname() and not _runs(numbers)


def _runs(process: str) -> bool:
    """Return whether the process runs, and is not a newer one with the same number."""
    pid, _, began = process.partition("-")
    with suppress(ProcessLookupError, ValueError, OverflowError):
        if os.name != "nt":  # where os.kill would end the process
            with suppress(PermissionError):
                os.kill(int(pid), 0)
        return _start_time(pid) in (began, "")
    return False


def _start_time(pid: str) -> str:
    """Return a process's start time in the kernel's clock ticks; empty if the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def this_process() -> str:
    """Return ``HOST:PID-START``, which identifies this process in traces."""
    pid = str(os.getpid())
    return f"{socket.gethostname()}:{pid}-{_start_time(pid)}"
