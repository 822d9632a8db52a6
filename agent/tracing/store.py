"""Traces in SQL: the newest first, looked up by the beginning of an id, pruned, erased with a person."""

import json
import os
import re
import socket
import zlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Insert, Table, and_, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.errors import BadInput
from agent.tracing.serialization import MAKER, read_trace
from agent.tracing.trace import LONGEST_TURN, TURN, Status, Summary, Trace, Usage
from memory.errors import NotFound
from memory.sql.engine import Database
from memory.sql.tables import messages, trace_bodies, traces, users

LOT = 500
"""Rows that are deleted in one transaction, and read at a time."""
LAST = "last"
_MAKER = "made_by_"
"""How the rows among the bodies are called that say what made traces."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which traces: all that fulfil every condition that is given."""

    user: str | None = None
    place: str | None = None
    """Its key; what happened in places inside it counts too. Empty: in private."""
    tool: str | None = None
    """A tool that was called."""
    failed: bool = False
    """Only where the turn failed, a tool did, or it was cut off."""
    text: str | None = None
    """Part of the beginning of what was said or answered, in any case."""
    since: datetime | None = None
    slower: float | None = None
    """Seconds it took at least."""
    kinds: frozenset[str] = frozenset({TURN})
    """Empty: of every kind."""


class Traces:
    def __init__(self, database: Database, record: Database | None = None) -> None:
        """`record` is where people and messages are, where that is another database."""
        self._database = database
        self._record = record
        self._makers: dict[str, Mapping[str, Any]] = {}
        """Those that are known to be kept."""

    @property
    def where(self) -> str:
        """What to call their database in messages."""
        return self._database.where

    async def write(
        self,
        written: Sequence[tuple[Summary, bytes]],
        now: datetime,
        known: Collection[str] = (),
        made_by: tuple[str, Mapping[str, Any]] | None = None,
    ) -> int:
        """Add traces, or write them anew; durable on return. How many: what was said by somebody who was
        erased meanwhile is not written, nor is one of the ids in `known`, written before, that has gone.
        `made_by` is what made them, and what it is called in them."""
        async with self._database.write() as connection:
            if self._record is None:
                kept = await _still_there(connection, written)
            else:
                async with self._record.read() as record:
                    kept = await _still_there(record, written)
            if known:
                query = select(traces.c.id).where(traces.c.id.in_(known))
                gone = set(known).difference(await connection.scalars(query))
                kept = [(summary, body) for summary, body in kept if summary.id not in gone]
            if kept:
                rows = [_row(summary, now) for summary, _ in kept]
                await connection.execute(self._upsert(traces, "id"), rows)
                bodies = [{"trace_id": summary.id, "body": body} for summary, body in kept]
                if made_by is not None and made_by[0] not in self._makers:
                    told = zlib.compress(json.dumps(made_by[1], ensure_ascii=False).encode())
                    bodies.append({"trace_id": _MAKER + made_by[0], "body": told})
                await connection.execute(self._upsert(trace_bodies, "trace_id"), bodies)
        if kept and made_by is not None:
            self._makers[made_by[0]] = made_by[1]
        return len(kept)

    def _upsert(self, table: Table, key: str) -> Insert:
        new: Any = (insert_sqlite if self._database.sqlite else insert_postgresql)(table)
        values = {c.name: new.excluded[c.name] for c in table.c if c.name not in (key, "seq")}
        statement: Insert = new.on_conflict_do_update(index_elements=[key], set_=values)
        return statement

    async def list(
        self, wanted: Wanted, now: datetime, limit: int = 20, *, before: str | None = None
    ) -> list[Summary]:
        """The newest first; `before` goes on below the trace of this id."""
        query = select(traces).where(*_conditions(wanted)).order_by(traces.c.seq.desc()).limit(limit)
        if before is not None:
            below = select(traces.c.seq).where(traces.c.id == before).scalar_subquery()
            query = query.where(traces.c.seq < below)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        found = [_summary(row, now) for row in rows]
        return [one for one in found if not (wanted.failed and one.status == "running")]

    async def each(self, wanted: Wanted, now: datetime) -> AsyncIterator[Summary]:
        """All of them, the newest first, some at a time."""
        before: str | None = None
        while some := await self.list(wanted, now, LOT, before=before):
            for summary in some:
                yield summary
            before = some[-1].id

    async def count(self, wanted: Wanted) -> int:
        query = select(func.count()).select_from(traces).where(*_conditions(wanted))
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one())

    async def find(self, id: str, now: datetime) -> Summary:
        """One by its id, by the beginning of it, or `last` for the newest turn. Raises NotFound, and BadInput
        where the beginning is of several."""
        named = id.strip().lower().removeprefix("trace_")
        query = select(traces)
        if named == LAST:
            query = query.where(traces.c.kind == TURN).order_by(traces.c.seq.desc()).limit(1)
        elif re.fullmatch(r"[0-9a-f]{4,32}", named):
            query = (
                query.where(traces.c.id.between(f"trace_{named}", f"trace_{named}g"))
                .order_by(traces.c.seq.desc())
                .limit(2)
            )
        else:
            raise BadInput(f"{id!r} is no id of a trace; give its first characters (4 or more), or `last`")
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        if not rows:
            raise NotFound("there is no trace yet" if named == LAST else f"there is no trace {id!r}")
        if len(rows) > 1 and len(named) < 32:
            raise BadInput(f"several traces begin with {id!r}; give more of the id")
        return _summary(rows[0], now)

    async def get(self, id: str, now: datetime) -> Trace:
        """The whole of one. Raises NotFound and BadInput as `find` does."""
        summary = await self.find(id, now)
        query = select(trace_bodies.c.body).where(trace_bodies.c.trace_id == summary.id)
        async with self._database.read() as connection:
            body = (await connection.execute(query)).scalar()
        if body is None:
            raise NotFound(f"the trace {summary.short} has just been taken away")
        try:
            return await self._whole(read_trace(summary, body))
        except ValueError as error:
            raise BadInput(str(error)) from error

    async def _whole(self, trace: Trace) -> Trace:
        """With what it was made by."""
        maker = trace.made_by[MAKER]
        if maker not in self._makers:
            query = select(trace_bodies.c.body).where(trace_bodies.c.trace_id == f"{_MAKER}{maker}")
            async with self._database.read() as connection:
                told = (await connection.execute(query)).scalar()
            if told is None:
                return replace(trace, made_by={})
            self._makers[maker] = json.loads(zlib.decompress(told))
        return replace(trace, made_by=self._makers[maker])

    async def after(self, turn_id: str, now: datetime) -> Sequence[Trace]:
        """What was done after a turn, in order."""
        query = (
            select(traces, trace_bodies.c.body)
            .join(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
            .where(traces.c.turn_id == turn_id)
            .order_by(traces.c.seq)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return [await self._whole(read_trace(_summary(row, now), row.body)) for row in rows]

    async def prune(self, before: datetime) -> int:
        """Delete what began earlier; how many went."""
        return await self._delete(traces.c.started_at < before)

    async def places_of(self, user: str) -> set[str]:
        """The keys of the places where somebody spoke."""
        query = select(traces.c.place).where(traces.c.user_id == user, traces.c.place != "").distinct()
        async with self._database.read() as connection:
            return set(await connection.scalars(query))

    async def erase(self, user: str, places: Collection[str] = ()) -> int:
        """Delete what a person said or was answered, and all from the places where they spoke, whose prompts
        show what they said there. How many went."""
        theirs = [traces.c.user_id == user, *(_inside(place) for place in places)]
        gone = await self._delete(or_(*theirs))
        if self._database.sqlite:  # what was written last is in a file of its own, old texts too
            async with self._database.read() as connection:
                await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone

    async def _delete(self, condition: ColumnElement[bool]) -> int:
        gone = 0
        while True:
            async with self._database.write() as connection:
                if self._database.sqlite:
                    await connection.exec_driver_sql("PRAGMA secure_delete=ON")
                some = select(traces.c.id).where(condition).limit(LOT)
                ids = list((await connection.execute(some)).scalars())
                await connection.execute(delete(trace_bodies).where(trace_bodies.c.trace_id.in_(ids)))
                await connection.execute(delete(traces).where(traces.c.id.in_(ids)))
            gone += len(ids)
            if len(ids) < LOT:
                return gone


async def _still_there(
    connection: AsyncConnection, written: Sequence[tuple[Summary, bytes]]
) -> list[tuple[Summary, bytes]]:
    """Without those whose message, or of work whose person, has been erased."""
    said = {summary.message_id for summary, _ in written if summary.message_id}
    worked = {summary.user for summary, _ in written if summary.user and summary.kind != TURN}
    here: set[str] = set()
    if said:
        here |= set(await connection.scalars(select(messages.c.id).where(messages.c.id.in_(said))))
    if worked:
        here |= set(await connection.scalars(select(users.c.id).where(users.c.id.in_(worked))))
    return [
        (summary, body)
        for summary, body in written
        if (summary.message_id if summary.kind == TURN else summary.user) in {None, *here}
    ]


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.kinds:
        found.append(traces.c.kind.in_(sorted(wanted.kinds)))
    if wanted.user is not None:
        found.append(traces.c.user_id == wanted.user)
    if wanted.place is not None:
        found.append(_inside(wanted.place) if wanted.place else traces.c.place == "")
    if wanted.tool:
        named = [traces.c.tools.contains(f" {wanted.tool}{end}", autoescape=True) for end in (" ", "! ")]
        found.append(or_(*named))
    if wanted.failed:
        late = and_(traces.c.status == "running", traces.c.process != process())
        found.append(or_(traces.c.status.in_(["error", "tool_error"]), late))
    if wanted.text:
        parts = [column.icontains(wanted.text, autoescape=True) for column in (traces.c.said, traces.c.reply)]
        found.append(or_(*parts))
    if wanted.since is not None:
        found.append(traces.c.started_at >= wanted.since)
    if wanted.slower is not None:
        found.append(traces.c.took >= wanted.slower)
    return found


def _inside(place: str) -> ColumnElement[bool]:
    return or_(traces.c.place == place, traces.c.place.startswith(f"{place}/", autoescape=True))


def _row(summary: Summary, now: datetime) -> dict[str, Any]:
    return {
        "id": summary.id,
        "kind": summary.kind,
        "turn_id": summary.turn_id,
        "status": summary.status,
        "started_at": summary.started_at,
        "written_at": now,
        "took": summary.took,
        "user_id": summary.user,
        "place": summary.place,
        "conversation_id": summary.conversation,
        "surface": summary.surface,
        "model": summary.model,
        "process": summary.process,
        "said": summary.said,
        "reply": summary.reply,
        "error": summary.error,
        "calls": summary.calls,
        "tools": "".join(f" {name}" for name in summary.tools) + " ",
        "input_tokens": summary.usage.input,
        "output_tokens": summary.usage.output,
        "cached_tokens": summary.usage.cached,
        "message_id": summary.message_id,
    }


def _summary(row: Any, now: datetime) -> Summary:
    summary = Summary(
        id=row.id,
        kind=row.kind,
        turn_id=row.turn_id,
        status=row.status,
        started_at=row.started_at,
        took=row.took,
        user=row.user_id,
        place=row.place,
        conversation=row.conversation_id,
        surface=row.surface,
        model=row.model,
        said=row.said,
        reply=row.reply,
        error=row.error,
        calls=row.calls,
        tools=tuple(row.tools.split()),
        usage=Usage(row.input_tokens, row.output_tokens, row.cached_tokens),
        message_id=row.message_id,
        process=row.process,
    )
    return replace(summary, status=_lives(summary, row.written_at, now))


def _lives(summary: Summary, written_at: datetime, now: datetime) -> Status:
    """Whether what is said to be running can be: it leaves no word when its process is killed."""
    if summary.status != "running":
        return summary.status
    host, _, number = summary.process.rpartition(":")
    if now - written_at > LONGEST_TURN or (host == socket.gethostname() and not _runs(number)):
        return "killed"
    return "running"


def _runs(number: str) -> bool:
    """Whether it is there, and is not another that was given the same number since."""
    if os.name == "nt":  # asking there would end it
        return True
    pid, _, began = number.partition("-")
    with suppress(ProcessLookupError, ValueError, OverflowError):
        with suppress(PermissionError):
            os.kill(int(pid), 0)
        return _began(pid) in (began, "")
    return False


def _began(pid: str) -> str:
    """When it began, in the kernel's own count; empty where the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def process() -> str:
    """What this process is called in a trace: the machine, its number there, and when it began."""
    pid = str(os.getpid())
    return f"{socket.gethostname()}:{pid}-{_began(pid)}"
