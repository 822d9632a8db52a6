"""Hide the rows of a cascade and show them again, in the caller's transaction.

Which links are active is computed from the hidden rows (`memory.sql.memories.replacements`), so overlapping
forgettings may be undone in any order. Edited messages are hidden too and never purged. They are shown again
when a client returns to an older branch (`replace_messages`, `restore_messages`).
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.forgetting.cascade import Cascade, of_edit
from memory.sql import hidden as entries
from memory.sql.hidden import Kind, link_id, still_hidden
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import begins
from memory.sql.rests_on import stated_in
from memory.sql.tables import forgettings, hidden


async def hide(
    connection: AsyncConnection, forgetting: str, cascade: Cascade, now: datetime
) -> dict[Kind, set[str]]:
    """Hide a cascade. Returns the rows that were not hidden before."""
    rows: dict[Kind, Collection[str]] = {
        "link": [link_id(*link) for link in cascade.links],
        "message": cascade.messages | cascade.replies,
        "task": cascade.tasks,
        "entry": cascade.entries,
    }
    new = {kind: set(ids) - await still_hidden(connection, kind, ids) for kind, ids in rows.items()}
    await entries.hide(connection, forgetting, rows)
    await tell_platforms(connection, rows["message"], now)
    return new


async def show(connection: AsyncConnection, forgetting: str, now: datetime) -> dict[Kind, set[str]]:
    """Delete a forgetting. Returns its rows that no other forgetting hides, so that they are visible."""
    rows = await entries.rows_of(connection, [forgetting])
    await connection.execute(delete(hidden).where(hidden.c.forgetting_id == forgetting))
    await connection.execute(delete(forgettings).where(forgettings.c.id == forgetting))
    back = {kind: ids - await still_hidden(connection, kind, ids) for kind, ids in rows.items()}
    await tell_platforms(connection, {*back.get("message", ()), *back.get("told", ())}, now)
    return back


async def undoable(connection: AsyncConnection, id: str, user: str, now: datetime) -> Any:
    """Return the person's forgetting with this id, or prefix of eight or more characters. Raises NotFound if
    it is too late to undo."""
    mine = (forgettings.c.person == user, forgettings.c.why == "forgotten", forgettings.c.until > now)
    rows = await connection.execute(
        select(forgettings).where(begins(forgettings.c.id, id), *mine).with_for_update()
    )
    found = rows.all()
    if len(found) != 1:
        raise NotFound(f"there is no forgetting {id!r} to undo: the time for it is over, or the id is wrong")
    return found[0]


async def replace_messages(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> None:
    """Hide these messages of the user, and the rows that only they state, in the caller's transaction."""
    cascade = await of_edit(connection, ids, user, now)
    forgetting = await entries.begin(connection, user, "edited", now, None)
    await hide(connection, forgetting, cascade, now)
    facts = [fact.id for fact in cascade.facts]
    await withhold(connection, now, message_ids=ids, memory_ids=facts, owners=cascade.owners)


async def restore_messages(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> None:
    """Undo `replace_messages` for these messages and the rows that they state."""
    these = select(forgettings.c.id).join(hidden, hidden.c.forgetting_id == forgettings.c.id)
    these = these.where(hidden.c.kind == "message", hidden.c.row_id.in_(ids), forgettings.c.why == "edited")
    edits = set(await connection.scalars(these))
    whole = await entries.rows_of(connection, edits)
    stated = set(await connection.scalars(stated_in(ids)))
    back: dict[Kind, set[str]] = {
        kind: {id for id in found if id.partition(" ")[0] in stated} for kind, found in whole.items()
    }
    back["message"] = whole.get("message", set()).intersection(ids)
    for kind, found in back.items():
        await entries.show(connection, kind, found, hidden.c.forgetting_id.in_(edits))
    await tell_platforms(connection, back["message"], now)
    await withhold(connection, now, message_ids=ids)
