"""Prunes traces, erases those of a person, and withholds and empties those that show what was forgotten."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Collection, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, func, or_, select, true, update

from agent.tracing.serialization import texts_of
from agent.tracing.store.rows import BATCH, inside, is_withheld
from agent.tracing.store.traces import delete_bodies
from agent.tracing.trace import FORGOTTEN
from memory.audience import GLOBAL
from memory.erasure.forgotten_data import ForgottenData
from memory.sql.engine import Database
from memory.sql.tables import trace_bodies, traces
from memory.text.short_ids import names_any


async def prune(database: Database, before: datetime) -> int:
    """Delete traces that began before that time. Returns how many were deleted."""
    return await _delete(database, traces.c.started_at < before)


async def places_of(database: Database, user: str) -> set[str]:
    """Return the keys of the places where a person spoke."""
    query = select(traces.c.place).where(traces.c.user_id == user, traces.c.place != "").distinct()
    return {row.place for row in await database.rows(query)}


async def erase(database: Database, user: str, places: Collection[str], ids: Set[str]) -> int:
    """Delete a person's traces, those of `places`, whose prompts contain what the person said there, and all
    in which one of their `ids` stands. Returns how many were deleted."""
    gone = await _delete(database, or_(traces.c.user_id == user, *(inside(place) for place in places)))
    query = (
        select(traces.c.seq, traces.c.id, trace_bodies.c.body)
        .join(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
        .order_by(traces.c.seq)
        .limit(BATCH)
    )
    last = 0
    while ids and (rows := await database.rows(query.where(traces.c.seq > last))):
        last = rows[-1].seq
        found = await asyncio.to_thread(_naming, rows, ids)
        gone += await _delete(database, traces.c.id.in_(found)) if found else 0
    await database.empty_log()
    return gone


@dataclass(frozen=True, slots=True)
class Sought:
    """Which traces show what was forgotten: those since then of the turns of its messages, those of `user`
    and of the places among `owners` whose content shows it, and all others in which an id stands that is
    `gone` for everybody."""

    data: ForgottenData
    user: str
    owners: Collection[str]
    gone: Collection[str]
    since: datetime


async def withhold(database: Database, sought: Sought) -> int:
    """Hide the content of these traces from every read until `forget` or `release`. Returns how many."""
    withheld = 0
    async for ids in _showing_it(database, sought, ~is_withheld()):
        hidden = update(traces).where(traces.c.id.in_(ids), ~is_withheld())
        async with database.write() as connection:
            done = await connection.execute(hidden.values(status=f"{FORGOTTEN} " + traces.c.status))
        withheld += done.rowcount
    return withheld


async def release(database: Database, still: Sequence[Sought]) -> None:
    """Show the withheld traces again, but those that show what is `still` forgotten."""
    hidden = and_(is_withheld(), traces.c.status != FORGOTTEN)
    kept = [id for one in still async for ids in _showing_it(database, one, hidden) for id in ids]
    shown = update(traces).where(hidden, traces.c.id.not_in(kept))
    async with database.write() as connection:
        await connection.execute(shown.values(status=func.substr(traces.c.status, len(FORGOTTEN) + 2)))


async def forget(database: Database, sought: Sought) -> int:
    """Empty these traces. Their figures stay. Returns how many were emptied."""
    emptied = 0
    async for ids in _showing_it(database, sought, traces.c.status != FORGOTTEN):
        emptied += await _empty(database, ids)
    await database.empty_log()
    return emptied


async def _showing_it(
    database: Database, sought: Sought, among: ColumnElement[bool]
) -> AsyncIterator[list[str]]:
    places = [owner for owner in sought.owners if owner.startswith("place:")]
    everywhere = [true()] if GLOBAL in sought.owners else []
    theirs = or_(traces.c.user_id == sought.user, *map(inside, places), *everywhere)
    gone = [id.encode() for id in sought.gone]
    query = (
        select(traces.c.seq, traces.c.id, traces.c.said, traces.c.reply, traces.c.error)
        .add_columns(traces.c.message_id, trace_bodies.c.body, theirs.label("theirs"))
        .outerjoin(trace_bodies, trace_bodies.c.trace_id == traces.c.id)
        .where(traces.c.started_at >= sought.since, among)
        .order_by(traces.c.seq)
        .limit(BATCH)
    )
    last = 0
    while rows := await database.rows(query.where(traces.c.seq > last)):
        last = rows[-1].seq
        if ids := await asyncio.to_thread(_showing, rows, sought.data, gone):
            yield ids


async def _empty(database: Database, ids: Collection[str]) -> int:
    emptied = update(traces).where(traces.c.id.in_(ids))
    async with database.write() as connection:
        await delete_bodies(connection, ids)
        await connection.execute(emptied.values(said="", reply="", error=None, status=FORGOTTEN))
    return len(ids)


async def _delete(database: Database, condition: ColumnElement[bool]) -> int:
    gone = 0
    while True:
        async with database.write() as connection:
            ids = list(await connection.scalars(select(traces.c.id).where(condition).limit(BATCH)))
            await delete_bodies(connection, ids)
            await connection.execute(delete(traces).where(traces.c.id.in_(ids)))
        gone += len(ids)
        if len(ids) < BATCH:
            return gone


def _naming(rows: Sequence[Row[Any]], ids: Set[str]) -> list[str]:
    found = []
    for row in rows:
        with suppress(zlib.error):
            if names_any(zlib.decompress(row.body).decode("utf-8", "replace"), ids):
                found.append(row.id)
    return found


def _holds(row: Any, sought: Sequence[bytes]) -> bool:
    with suppress(zlib.error):
        content = " ".join((row.said, row.reply, row.error or "")).encode("utf-8", "surrogatepass")
        content += zlib.decompress(row.body)
        return any(text in content for text in sought)
    return False


def _showing(rows: Sequence[Row[Any]], data: ForgottenData, gone: Sequence[bytes]) -> list[str]:
    return [row.id for row in rows if (_shows(row, data) if row.theirs else row.body and _holds(row, gone))]


def _shows(row: Any, data: ForgottenData) -> bool:
    """Whether the row of a trace, or its body, shows the forgotten data."""
    if row.message_id in data.ids:
        return True
    try:
        texts = [row.said, row.reply, row.error or "", *(texts_of(row.body) if row.body else ())]
    except (zlib.error, ValueError):  # nobody can tell what an unreadable body shows
        return True
    return any(data.shown_by(text) for text in texts)
