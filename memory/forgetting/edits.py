"""Edits: what a client no longer has in its history, or a person has worded otherwise on a chat platform, is
hidden, and shown when an older branch comes back.

It is never deleted for good by that. Facts, entries and tasks that rest on such messages alone are hidden
with them; what these facts had replaced holds again.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.facts.derived import withhold
from memory.forgetting.hiding import hide, shown_again
from memory.forgetting.reach import of_edit
from memory.sql import hidden as entries
from memory.sql.hidden import Kind, by_edit, rows_of
from memory.sql.rests_on import stated_in
from memory.sql.tables import hidden


async def replace_messages(
    connection: AsyncConnection, ids: Collection[str], user: str, now: datetime
) -> None:
    """In the caller's transaction, hide these messages of the user, and replies to them."""
    reach = await of_edit(connection, ids, user)
    forgetting = await entries.begin(connection, user, "edited", now, None)
    await hide(connection, forgetting, reach, now)
    facts = [fact.id for fact in reach.facts]
    await withhold(connection, now, message_ids=ids, memory_ids=facts, owners=reach.owners)


async def bring_back(connection: AsyncConnection, ids: Collection[str], user: str, now: datetime) -> None:
    """Undo `replace_messages` for these messages, and for what was hidden with them and one of them
    states."""
    mine = (hidden.c.kind == "message", hidden.c.row_id.in_(ids), by_edit())
    edits = set(await connection.scalars(select(hidden.c.forgetting_id).where(*mine)))
    whole = await rows_of(connection, edits)
    stated = set(await connection.scalars(stated_in(ids)))
    back: dict[Kind, set[str]] = {
        kind: {id for id in found if id.partition(" ")[0] in stated} for kind, found in whole.items()
    }
    back["message"] = whole.get("message", set()).intersection(ids)
    links = back.get("link", set())
    back["replaced"] = {
        id for id in whole.get("replaced", ()) if entries.link_id(*id.split(" ", 2)[1:]) in links
    }
    for kind, found in back.items():
        await entries.show(connection, kind, found, hidden.c.forgetting_id.in_(edits))
    await shown_again(connection, back, now)
    await withhold(connection, now, message_ids=ids)
