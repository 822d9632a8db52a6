"""Converts summaries to rows of `traces` and back, selects rows by a filter, decides which traces may be
stored, and searches and deletes their bodies."""

import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    and_,
    delete,
    exists,
    literal,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.tracing.serialization import StoredTrace
from agent.tracing.store.filters import TraceFilter
from agent.tracing.trace import CALL, TURN, Content, Status, Summary
from agent.types import Usage
from memory.audience import user_key
from memory.process.identity import has_ended, this_process
from memory.sql.hidden import link_is_hidden
from memory.sql.messages.message_rows import is_visible
from memory.sql.tables import memories, memory_owners, messages, trace_bodies, trace_rows, traces, users

BATCH = 500
"""Rows to read at a time, or to delete in one transaction."""
ID_BYTES = 16
FAILED = ("error", "tool_error", "malformed")
LONGEST_TURN = timedelta(minutes=15)
"""An unfinished trace counts as killed if it was not rewritten for this long."""


_STORED = {one.name for one in fields(Summary)} - {"tools", "usage", "content", "name", "work"}
_COLUMNS = {name: name for name in _STORED} | {"user": "user_id", "conversation": "conversation_id"}
"""Fields of a Summary that are stored unchanged, and their columns."""


def to_row(summary: Summary, now: datetime) -> dict[str, Any]:
    row = {column: getattr(summary, field) for field, column in _COLUMNS.items()}
    row |= {"written_at": now, "tools": "".join(f" {name}" for name in summary.tools) + " "}
    return row | {f"{name}_tokens": number for name, number in asdict(summary.usage).items()}


def to_summary(row: Any, now: datetime, *, hidden: bool = False) -> Summary:
    """Return the summary of a row with `has_body`. If its process has ended, `running` becomes `killed`. If
    it is `hidden`, the content is left out."""
    status: Status = row.status
    if status == "running" and (now - row.written_at > LONGEST_TURN or has_ended(row.process)):
        status = "killed"
    unchanged = {field: getattr(row, column) for field, column in _COLUMNS.items()}
    usage = Usage(row.input_tokens, row.output_tokens, row.cached_tokens)
    unchanged |= {"status": status}
    if hidden:
        unchanged |= {"said": "", "reply": "", "error": None}
    content: Content = "forgotten" if not row.has_body else "hidden" if hidden else "kept"
    return Summary(**unchanged, tools=tuple(row.tools.split()), usage=usage, content=content)


def as_bytes(id: str) -> bytes | None:
    """Return a row's id as `trace_rows` stores it; None if it is no UUID."""
    try:
        found = bytes.fromhex(id.replace("-", ""))
    except ValueError:
        return None
    return found if len(found) == ID_BYTES else None


def conditions(wanted: TraceFilter) -> Iterator[ColumnElement[bool]]:
    c = traces.c
    if wanted.kinds:
        yield c.kind.in_(sorted(wanted.kinds))
    if wanted.user is not None:
        yield c.user_id == wanted.user
    if wanted.place is not None:
        yield inside(wanted.place) if wanted.place else c.place == ""
    if wanted.tool:
        yield or_(*(c.tools.contains(f" {wanted.tool}{end}", autoescape=True) for end in (" ", "! ")))
    if wanted.failed:
        maybe_killed = and_(c.status == "running", c.process != this_process())
        work = traces.alias()
        after = exists().where(work.c.turn_id == c.id, work.c.status.in_(FAILED))
        yield or_(c.status.in_(FAILED), c.retried > 0, maybe_killed, after)
    if wanted.since is not None:
        yield c.started_at >= wanted.since
    if wanted.message_id is not None:
        yield c.message_id == wanted.message_id
    if wanted.row is not None:
        showing = select(trace_rows.c.trace).where(trace_rows.c.row_id == as_bytes(wanted.row))
        yield c.seq.in_(showing)
    if wanted.slower is not None:
        yield c.took >= wanted.slower


def inside(place: str) -> ColumnElement[bool]:
    """Return the condition that a trace is of the place, or of a place inside it."""
    return or_(traces.c.place == place, traces.c.place.startswith(f"{place}/", autoescape=True))


def holds(row: Any, text: str) -> bool:
    """Return whether the row or its body contains the text, in any letter case."""
    wanted = json.dumps(text, ensure_ascii=False)[1:-1].casefold()
    if wanted in f"{row.said}\n{row.reply}".casefold():
        return True
    with suppress(zlib.error):  # if the body is unreadable, only the row counts
        body = zlib.decompress(row.body)
        if wanted.isascii():
            return wanted.encode() in body.lower()
        return wanted in body.decode("utf-8", "replace").casefold()
    return False


async def delete_bodies(connection: AsyncConnection, ids: Collection[str]) -> None:
    """Delete the bodies of these traces, and the list of rows that they show."""
    await connection.execute(delete(trace_bodies).where(trace_bodies.c.trace_id.in_(ids)))
    numbers = select(traces.c.seq).where(traces.c.id.in_(ids))
    await connection.execute(delete(trace_rows).where(trace_rows.c.trace.in_(numbers)))


async def not_erased(connection: AsyncConnection, written: Sequence[StoredTrace]) -> list[StoredTrace]:
    """Return the traces that may be written, without turns whose message was deleted or forgotten, and
    without jobs and calls of erased people. People who only called tools are recognised by their memories."""
    about = [one.summary for one in written]
    rests_on = [(messages, one.message_id) if one.kind == TURN else (users, one.user) for one in about]
    here: set[str | None] = {None}
    for table, condition in ((messages, is_visible()), (users, true())):
        if ids := {id for needed, id in rests_on if needed is table and id}:
            there = select(table.c.id).where(table.c.id.in_(ids), condition)
            here |= set(await connection.scalars(there))
    if callers := sorted({one.user for one in about if one.kind == CALL and one.user}):
        here |= set(await connection.scalars(union_all(*map(_if_remembered, callers))))
    here |= {one.user for one in about if one.kind != TURN and one.user == one.place}  # jobs of a place
    return [one for one, (_, id) in zip(written, rests_on, strict=True) if id in here]


def _if_remembered(user: str) -> Select[str]:
    """Select the person if they stated or own a memory. This always takes two index seeks."""
    told = exists().where(memories.c.user_id == user)
    theirs = exists().where(memory_owners.c.owner == user_key(user), ~link_is_hidden())
    return select(literal(user)).where(or_(told, theirs))


@cache
def upsert(table: Table, key: str) -> Any:
    """Build an upsert. It is built once, because that takes longer than running it. For `traces`, it returns
    each id with its `seq`."""
    new = insert(table)
    values = {c.name: new.excluded[c.name] for c in table.c if c.name not in (key, "seq")}
    statement = new.on_conflict_do_update(index_elements=[key], set_=values)
    return statement.returning(table.c.id, table.c.seq) if table is traces else statement


async def note_rows(
    connection: AsyncConnection, numbers: Mapping[str, int], kept: Sequence[StoredTrace]
) -> None:
    """Store which rows each trace shows, by the trace's `seq`."""
    shown = {(numbers[one.summary.id], as_bytes(id)) for one in kept for id in one.rows}
    rows = [row for row in shown if row[1] is not None]
    if rows:  # without SQLAlchemy, which takes three times as long
        insertion = insert(trace_rows).on_conflict_do_nothing()
        written = insertion.compile(dialect=connection.dialect, column_keys=trace_rows.c.keys())
        await connection.exec_driver_sql(str(written), rows)
