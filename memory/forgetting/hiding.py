"""Hide the rows of a cascade, show them again, and replace the text of an edited message, in the caller's
transaction.

Which links are active is computed from the hidden rows (`memory.sql.memories.replacements`), so overlapping
forgettings may be undone in any order. Edited messages are hidden too and never purged. They are shown again
when a client returns to an older branch (`replace_messages`, `restore_messages`).
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.errors import NotFound
from memory.facts.derived import consolidate_again, withhold
from memory.forgetting.cascade import Cascade, of_edit
from memory.process.spans import new_id
from memory.records import Message
from memory.sql import hidden as entries
from memory.sql.hidden import Kind, link_id, still_hidden
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import begins
from memory.sql.messages.summaries import owner_of
from memory.sql.messages.transcript import Transcript
from memory.sql.rests_on import record, stated_in
from memory.sql.tables import active_conversations, forgettings, hidden, messages


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


async def reword(
    connection: AsyncConnection,
    transcript: Transcript,
    old: Message,
    text: str,
    user: str,
    place: Place,
    now: datetime,
    *,
    answers: Collection[str],
) -> Message:
    """Hide a message and the rows that only it states, and store the new text in its position, in the
    caller's transaction. The `answers` are linked to the new message, which is consolidated again."""
    await replace_messages(connection, {old.id}, user, now)
    new, owner = replace(old, id=new_id(), text=text), owner_of(user, place)
    await transcript.append(connection, new, user=user, place=place, now=now)
    at = await move_to(connection, old.id, new.id)
    for answer in answers:
        await record(connection, answer, [new.id], "answered")
    active = active_conversations.c
    this = active.conversation_id == old.conversation_id, active.owner == owner
    covered = await connection.scalar(select(active.covered).where(*this)) or 0
    message = new.id if at <= covered else None
    await consolidate_again(connection, old.conversation_id, owner, now, message=message)
    return new


async def move_to(connection: AsyncConnection, old: str, new: str) -> int:
    """Swap the positions of two messages, in the caller's transaction. Messages that follow the old one now
    follow the new one. Returns the new one's position."""
    both = select(messages.c.id, messages.c.seq).where(messages.c.id.in_((old, new)))
    at = {row.id: int(row.seq) for row in await connection.execute(both)}
    for id, seq in ((old, -at[new]), (new, at[old]), (old, at[new])):
        await connection.execute(update(messages).where(messages.c.id == id).values(seq=seq))
    await connection.execute(update(messages).where(messages.c.follows == old).values(follows=new))
    return at[old]
