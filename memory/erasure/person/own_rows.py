"""The rows that belong to a person alone. Each function runs in the caller's transaction."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Delete, Table, Update, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure.person.memories import NOBODY, memory_ids_of
from memory.sql import tables as t


def _own(user: str) -> dict[str, tuple[Table, ColumnElement[bool]]]:
    """By kind: the table, and the condition on its rows."""
    return {
        "work": (t.work, t.work.c.user_id == user),
        "tasks": (t.tasks, t.tasks.c.user_id == user),
        "context": (t.context_entries, t.context_entries.c.user_id == user),
        "forgotten": (t.forgotten, t.forgotten.c.user_id == user),
        "keys": (t.api_keys, t.api_keys.c.user_id == user),
        "names": (t.speakers, t.speakers.c.owner == user_key(user)),
        "figures": (t.figures, t.figures.c.user_id == user),
        "person": (t.users, t.users.c.id == user),
    }


async def count(connection: AsyncConnection, user: str) -> dict[str, int]:
    """How many rows an erasure would delete now, by kind, those that others may share too."""
    key = user_key(user)
    counted: dict[str, ColumnElement[bool]] = {
        "memories": t.memories.c.id.in_(memory_ids_of(user).order_by(None)),
        "messages": t.messages.c.user_id == user,
        "summaries": t.active_conversations.c.owner == key,
        **{kind: condition for kind, (_, condition) in _own(user).items()},
        "documents": t.knowledge_documents.c.owner == key,
    }
    queries = [select(func.count()).where(condition).scalar_subquery() for condition in counted.values()]
    found = (await connection.execute(select(*queries))).one()
    return {kind: number for kind, number in zip(counted, found, strict=True) if number}


async def delete_work(connection: AsyncConnection, user: str) -> Mapping[str, int]:
    """Delete the person's waiting jobs. Returns how many, by kind."""
    return {"work": (await connection.execute(delete(t.work).where(t.work.c.user_id == user))).rowcount}


async def delete_rows(connection: AsyncConnection, user: str, now: datetime) -> Mapping[str, int]:
    """Delete all of them, but revoke and anonymise keys. Their rows stay: while no key exists, a server that
    only this machine can reach admits everybody (`Keys.exist`). Returns how many, by kind."""
    removed = {}
    for kind, (table, mine) in _own(user).items():
        statement: Delete | Update = delete(table).where(mine)
        if table is t.api_keys:
            blank = {"name": "erased", "user_id": NOBODY, "digest": table.c.id, "last_used_at": None}
            statement = update(table).where(mine).values(**blank, revoked_at=now)
        removed[kind] = (await connection.execute(statement)).rowcount
    return removed
