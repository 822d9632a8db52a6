"""Decides which traces may be stored, and searches and deletes their bodies."""

import json
import zlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Select, delete, exists, literal, or_, select, true, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.tracing.serialization import StoredTrace
from agent.tracing.trace import CALL, TURN
from memory.audience import user_key
from memory.sql.hidden import link_is_hidden
from memory.sql.messages.message_rows import is_visible
from memory.sql.tables import (
    memories,
    memory_owners,
    messages,
    trace_bodies,
    trace_rows,
    traces,
    users,
)


def holding(rows: Sequence[Any], text: str) -> Sequence[Any]:
    """Return the rows that contain the text in any letter case, in the row or in the body."""
    wanted = json.dumps(text, ensure_ascii=False)[1:-1].casefold()
    return [row for row in rows if _holds(row, wanted)]


def _holds(row: Any, wanted: str) -> bool:
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
