"""Marks messages as replaced that are gone from a client's history, as after an edit, and brings them back.

A replaced message keeps its text for the person's own inspection. Facts that rest on it alone hold no longer,
derived texts that rest on it are withheld, and what these facts had replaced holds again.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import and_, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure.memory_removal import revive
from memory.erasure.taken import resting_on
from memory.facts.derived import withhold
from memory.process.spans import new_id
from memory.sql.changes import changed
from memory.sql.memory_rows import is_active
from memory.sql.owner_links import bring_back as bring_back_links
from memory.sql.owner_links import end
from memory.sql.rests_on import stated_in
from memory.sql.tables import memories, memory_owners, memory_updates, messages

MESSAGE_REPLACED = "its message was replaced"
MESSAGE_BACK = "its message is back"


async def replace_messages(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> None:
    """In the caller's transaction, mark these messages of a private conversation of the user as replaced."""
    holding = and_(memory_owners.c.owner == user_key(user), is_active())
    held = resting_on(ids, user).join(memory_owners, memory_owners.c.memory_id == memories.c.id)
    facts = set(await connection.scalars(held.where(holding)))
    await withhold(connection, now, message_ids=ids, memory_ids=facts, owners=[user_key(user)])
    await revive(connection, facts, now, corrected=True)
    await _mark(connection, ids, now)
    await _end(connection, facts, user, now)


async def bring_back(connection: AsyncConnection, ids: Collection[str], user: str, now: datetime) -> None:
    """Undo `replace_messages` for these messages, and for the facts that ended with one of them."""
    await _mark(connection, ids, None)
    ended = and_(memory_owners.c.owner == user_key(user), memory_owners.c.reason == MESSAGE_REPLACED)
    back = await bring_back_links(connection, ended & memory_owners.c.memory_id.in_(stated_in(ids)))
    await _note(connection, {row.memory_id for row in back}, user, MESSAGE_BACK, now)


async def _mark(connection: AsyncConnection, ids: Collection[str], at: datetime | None) -> None:
    these = update(messages).where(messages.c.id.in_(ids))
    await connection.execute(these.values(replaced_at=at))
    await changed(connection, "message", ids)


async def _end(connection: AsyncConnection, facts: Collection[str], user: str, now: datetime) -> None:
    await end(connection, facts, [user_key(user)], None, MESSAGE_REPLACED, now)
    await _note(connection, facts, user, MESSAGE_REPLACED, now)


async def _note(
    connection: AsyncConnection, facts: Collection[str], user: str, reason: str, now: datetime
) -> None:
    """Write the step into the history of each fact."""
    step = {"user_id": user, "reason": reason, "created_at": now, "owners": [user_key(user)]}
    rows: list[dict[str, Any]] = []
    for id in sorted(facts):
        new = id if reason == MESSAGE_BACK else None
        rows.append({**step, "id": new_id(), "old_id": id, "new_id": new})
    if rows:
        await connection.execute(insert(memory_updates), rows)
