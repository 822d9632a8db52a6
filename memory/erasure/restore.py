"""Keeps the rows that a forgetting takes, for as long as it can be undone, and puts them back.

The table `forgotten` holds them as JSON, and nothing else reads it.
"""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, delete, exists, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.erasure import message_removal
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.repeats import repeated_by_task
from memory.erasure.repetition import FactWords
from memory.errors import NotFound
from memory.facts.derived.sources import entry_id
from memory.sql.memory_rows import begins, index_again, is_active
from memory.sql.rests_on import record
from memory.sql.tables import (
    Utc,
    context_entries,
    forgotten,
    memories,
    memory_aliases,
    memory_owners,
    memory_tags,
    memory_updates,
    messages,
    rests_on,
    session_memories,
    tasks,
    work,
)

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""By table and primary key."""
Held = dict[str, dict[str, Any]]
"""The same with the texts of messages, by their ids."""

"""Columns that follow from the others."""
_NAMING = ("id", "memory_id", "derived_id", "old_id", "new_id")
"""Columns that name a memory."""

CleanJob = Callable[[str, str, dict[str, Any], ForgottenData], dict[str, Any] | None]
"""Called with (kind, user, payload, forgotten data): returns the payload of a waiting job without the data;
None if nothing is left to do."""


def _touching(ids: Collection[str]) -> dict[Table, ColumnElement[bool]]:
    """The tables that describe memories, and their rows about these; parents first."""
    return {
        memories: memories.c.id.in_(ids),
        memory_owners: memory_owners.c.memory_id.in_(ids),
        memory_aliases: memory_aliases.c.memory_id.in_(ids),
        memory_tags: memory_tags.c.memory_id.in_(ids),
        rests_on: rests_on.c.derived_id.in_(ids),
        session_memories: session_memories.c.memory_id.in_(ids),
        memory_updates: or_(memory_updates.c.old_id.in_(ids), memory_updates.c.new_id.in_(ids)),
    }


async def rows_of(connection: AsyncConnection, ids: Collection[str]) -> Rows:
    """All rows about these memories, as they are now."""
    found: Rows = {}
    for table, condition in _touching(ids).items():
        rows = await connection.execute(select(table).where(condition))
        found[table.name] = {_key(table, row._mapping): encoded(row._mapping) for row in rows}
    return found


def changed(before: Rows, after: Rows) -> Rows:
    """The rows of `before` that are gone or different, as they were."""
    return {
        table: {key: row for key, row in rows.items() if key not in after[table] or row != after[table][key]}
        for table, rows in before.items()
    }


async def take_back(connection: AsyncConnection, id: str, user: str, now: datetime) -> dict[str, Any]:
    """Remove and return the payload. Raises NotFound if it can no longer be undone, or is somebody else's."""
    mine = select(forgotten).where(
        begins(forgotten.c.id, id), forgotten.c.user_id == user, forgotten.c.until > now
    )
    rows = (await connection.execute(mine.with_for_update())).all()
    if len(rows) != 1:
        raise NotFound(f"nothing forgotten as {id!r} can be brought back: it is gone for good")
    await connection.execute(delete(forgotten).where(forgotten.c.id == rows[0].id))
    payload: dict[str, Any] = rows[0].payload
    return payload


async def drop_data(
    connection: AsyncConnection, data: ForgottenData, named: Collection[str], clean: CleanJob
) -> Held:
    """Take what is forgotten now from all that this person may still bring back, so that no earlier undo
    returns it: the messages `named` and those that show it, the facts, the waiting jobs and the profile.
    Returns the messages and rows, which come back when both are undone."""
    taken: Held = {}
    own = select(forgotten).where(forgotten.c.user_id == data.user).with_for_update()
    for row in (await connection.execute(own)).all():
        left = _without(row.payload, data, named, clean)
        if left == row.payload:
            continue
        staying, again = _held(left), row.payload.get("taken_again", {})
        moved = {
            table: {key: held for key, held in rows.items() if key not in staying[table]}
            for table, rows in _held(row.payload).items()
        }
        left["taken_again"] = {table: [*again.get(table, ()), *rows] for table, rows in moved.items()}
        await _store(connection, row.id, left)
        taken = {table: taken.get(table, {}) | rows for table, rows in moved.items()}
    return taken


async def hand_on(connection: AsyncConnection, user: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The payload without what an earlier forgetting of the person took too: that one holds it now."""
    own = select(forgotten).where(forgotten.c.user_id == user).order_by(forgotten.c.forgotten_at.desc())
    held = {table: dict(rows) for table, rows in _held(payload).items()}
    for row in (await connection.execute(own.with_for_update())).all():
        again = row.payload.get("taken_again", {})
        moved = {
            table: {k: held[table].pop(k) for k in again.get(table, ()) if k in held[table]} for table in held
        }
        if any(moved.values()):
            left = {table: [k for k in keys if k not in moved[table]] for table, keys in again.items()}
            await _store(connection, row.id, with_held(row.payload | {"taken_again": left}, moved))
    return payload | {"messages": held.pop(messages.name), "rows": held}


def with_held(payload: dict[str, Any], more: Held) -> dict[str, Any]:
    """The payload with these messages and rows too."""
    held = {table: rows | more.get(table, {}) for table, rows in _held(payload).items()}
    return payload | {"messages": held.pop(messages.name), "rows": held}


def _held(payload: Mapping[str, Any]) -> Held:
    return {messages.name: payload["messages"], **payload["rows"]}


async def _store(connection: AsyncConnection, id: str, payload: Mapping[str, Any]) -> None:
    await connection.execute(update(forgotten).where(forgotten.c.id == id).values(payload=dict(payload)))


def _without(
    payload: dict[str, Any], data: ForgottenData, named: Collection[str], clean: CleanJob
) -> dict[str, Any]:
    facts = data.facts
    known = payload["rows"][memories.name]
    gone = {
        id
        for id, row in known.items()
        if any(fact.same_as(FactWords.of(row["content"], data.teller)) for fact in facts)
    }
    jobs = [
        row | {"payload": left}
        for row in payload["work"]
        if (left := clean(row["kind"], row["user_id"], row["payload"], data))
    ]
    return payload | {
        "messages": {
            id: text
            for id, text in payload["messages"].items()
            if id not in named and not data.shown_by(text) and not any(f.stated_by(text) for f in facts)
        },
        "rows": {
            table: {key: row for key, row in rows.items() if gone.isdisjoint(map(row.get, _NAMING))}
            for table, rows in payload["rows"].items()
        },
        "work": jobs,
        "entries": [row for row in payload["entries"] if not data.shown_by(row["value"])],
        "tasks": [
            row
            for row in payload.get("tasks", ())
            if not repeated_by_task(row["description"], data.contents, data.teller)
        ],
    }


def memory_ids(payload: Mapping[str, Any]) -> set[str]:
    """The memories that a payload has rows about."""
    rows = [row for table in _touching(()) for row in payload["rows"][table.name].values()]
    named = {row[name] for row in rows for name in ("memory_id", "old_id") if name in row}
    return named.union(payload["rows"][memories.name])


async def put_back(connection: AsyncConnection, payload: Mapping[str, Any]) -> None:
    """Restore the memories, messages and tasks of a payload. What was erased since stays erased; where the
    same fact was stated again, that statement stays the active one."""
    await connection.execute(delete(work).where(work.c.id.in_(payload["jobs"])))
    for row in payload["work"]:
        await _put_back_row(connection, work, _decoded(work, row))
    for row in payload.get("tasks", ()):
        await _put_back_row(connection, tasks, _decoded(tasks, row))
    await message_removal.restore(connection, payload["messages"])
    for table in _touching(()):
        for row in payload["rows"].get(table.name, {}).values():
            await _put_back_row(connection, table, _decoded(table, row))
    await index_again(connection, memory_ids(payload))


async def put_back_entries(connection: AsyncConnection, payload: Mapping[str, Any]) -> None:
    """Restore the entries of the profile with their possible sources, except where something else was told
    meanwhile."""
    for row in payload["entries"]:
        values = _decoded(context_entries, {column.name: row[column.name] for column in context_entries.c})
        same = and_(*(column == values[column.name] for column in context_entries.primary_key))
        await connection.execute(delete(context_entries).where(same, context_entries.c.value == ""))
        if not await connection.scalar(select(exists().where(same))):
            await connection.execute(insert(context_entries).values(**values))
            id = entry_id(values["user_id"], values["place"], values["field"], values["item"])
            await record(connection, id, row.get("sources", ()), "stated")


async def _put_back_row(connection: AsyncConnection, table: Table, values: Row) -> None:
    same = and_(*(column == values[column.name] for column in table.primary_key))
    if table is memory_owners and values["superseded_by"] is None:
        other = select(memory_owners.c.memory_id).where(
            memory_owners.c.owner == values["owner"],
            memory_owners.c.content_key == values["content_key"],
            is_active(),
            memory_owners.c.memory_id != values["memory_id"],
        )
        if told_again := await connection.scalar(other):
            values = values | {"superseded_by": told_again}
    if await connection.scalar(select(exists().where(same))):
        await connection.execute(update(table).where(same).values(**values))
    elif "memory_id" not in values or await connection.scalar(
        select(exists().where(memories.c.id == values["memory_id"]))
    ):
        await connection.execute(insert(table).values(**values))


async def drop_naming(
    connection: AsyncConnection, names: Collection[str], ids: Collection[str], places: Collection[str]
) -> None:
    """Delete what can be brought back, whoever had it forgotten, if it contains one of these messages, names
    one of these people or owners, or has a reply from one of these places, which may repeat anybody there."""
    quoted = [json.dumps(name) for name in names]
    replies = select(messages.c.id).where(messages.c.role == "assistant", messages.c.place.in_(places))
    for row in (await connection.execute(select(forgotten.c.id, forgotten.c.payload))).all():
        text, held = json.dumps(row.payload), row.payload["messages"].keys()
        there = set(await connection.scalars(replies.where(messages.c.id.in_(held))))
        if there or not held.isdisjoint(ids) or any(name in text for name in quoted):
            await connection.execute(delete(forgotten).where(forgotten.c.id == row.id))


def _key(table: Table, row: Any) -> str:
    return " ".join(str(row[column.name]) for column in table.primary_key)


def encoded(row: Any) -> Row:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _decoded(table: Table, row: Row) -> Row:
    return {
        name: datetime.fromisoformat(value) if value and isinstance(table.c[name].type, Utc) else value
        for name, value in row.items()
        if name in table.c
    }
