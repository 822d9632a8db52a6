"""Hides rows and shows them again, in the caller's transaction: states of links, and what indexes are told.

A link that holds is superseded by its own memory while it is hidden. What it had replaced may hold again
meanwhile: that is an entry of its own (`replaced`), so that undoing restores the replacement.

What a client no longer has in its history, or a person has worded otherwise on a chat platform, is hidden
too, and shown when an older branch comes back (`replace_messages`, `bring_back`). That deletes nothing.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.errors import NotFound
from memory.facts.derived import withhold
from memory.forgetting.reach import Link, Reach, of_edit
from memory.sql import hidden as entries
from memory.sql.hidden import Kind, by_edit, link_id, replaced_id, still_hidden
from memory.sql.jobs.deliveries import tell_platforms
from memory.sql.memories.memory_rows import begins, unexpired
from memory.sql.memories.store import CORRECTED
from memory.sql.rests_on import stated_in
from memory.sql.tables import forgettings, hidden, memories, memory_owners

LINKS_AT_ONCE = 200


async def hide(connection: AsyncConnection, forgetting: str, reach: Reach, now: datetime) -> None:
    """Hide what a forgetting reaches. What its facts had replaced holds again as far as it `revives`; what
    somebody else stated does unless it was corrected on purpose."""
    rows: dict[Kind, Collection[str]] = {
        "link": [link_id(*link) for link in reach.links],
        "message": reach.messages | reach.replies,
        "task": reach.tasks,
        "entry": reach.entries,
    }
    await entries.hide(connection, forgetting, rows)
    await hide_links(connection, reach.links)
    await _revive(connection, forgetting, reach, now)
    await tell_platforms(connection, rows["message"], now)


async def hide_links(connection: AsyncConnection, links: Iterable[Link]) -> None:
    """Let these links hold no longer, once they are entered."""
    links = sorted(links)
    holding = update(memory_owners).where(memory_owners.c.superseded_by.is_(None))
    for at in range(0, len(links), LINKS_AT_ONCE):
        key = tuple_(memory_owners.c.memory_id, memory_owners.c.owner)
        these = key.in_(links[at : at + LINKS_AT_ONCE])
        await connection.execute(holding.where(these).values(superseded_by=memory_owners.c.memory_id))


async def show(connection: AsyncConnection, forgetting: str, now: datetime) -> dict[Kind, set[str]]:
    """Delete a forgetting, and show what nothing else hides. Returns the rows that are shown."""
    rows = await entries.rows_of(connection, [forgetting])
    await connection.execute(hidden.delete().where(hidden.c.forgetting_id == forgetting))
    await connection.execute(forgettings.delete().where(forgettings.c.id == forgetting))
    return await shown_again(connection, rows, now)


async def shown_again(
    connection: AsyncConnection, rows: dict[Kind, set[str]], now: datetime
) -> dict[Kind, set[str]]:
    """Show those of these rows whose entries were deleted and that nothing else hides."""
    back = {kind: ids - await still_hidden(connection, kind, ids) for kind, ids in rows.items()}
    links = [_link(id) for id in sorted(back.get("link", ()))]
    links = [link for link in links if await _is_there(connection, *link)]  # it may have expired meanwhile
    replaced = {(id, owner): by for id, by, owner in (one.split(" ", 2) for one in back.get("replaced", ()))}
    replaced = {link: by for link, by in replaced.items() if (by, link[1]) in links}
    for link in links:
        if by := replaced.get(link):
            await _give_way(connection, *link, by)
        else:
            await _hold_again(connection, *link)
    await _replace_again(connection, back.get("replaced", set()), {owner for _, owner in links})
    await tell_platforms(connection, {*back.get("message", ()), *back.get("told", ())}, now)
    return back


def _link(id: str) -> Link:
    memory, _, owner = id.partition(" ")
    return memory, owner


def _at(id: str, owner: str) -> ColumnElement[bool]:
    return and_(memory_owners.c.memory_id == id, memory_owners.c.owner == owner)


async def _give_way(connection: AsyncConnection, id: str, owner: str, by: str | None) -> None:
    """Let a link give way to this memory: to its own while it is hidden, to none where it holds."""
    await connection.execute(update(memory_owners).where(_at(id, owner)).values(superseded_by=by))


async def _holder(connection: AsyncConnection, link: Any) -> str | None:
    """The memory that holds the words of this link for its owner now."""
    same = (memory_owners.c.owner == link.owner, memory_owners.c.content_key == link.content_key)
    held = select(memory_owners.c.memory_id).where(*same, memory_owners.c.superseded_by.is_(None))
    found: str | None = await connection.scalar(held)
    return found


async def _hold_again(connection: AsyncConnection, id: str, owner: str) -> None:
    """Let a link hold that held before it was hidden, unless the same was told to the owner since."""
    row = (await connection.execute(select(memory_owners).where(_at(id, owner)))).first()
    if row is None or row.superseded_by != id:
        return
    by = await _holder(connection, row)
    if by is not None and await _steps_back(connection, by, owner):
        by = None
    await _give_way(connection, id, owner, by)


async def _steps_back(connection: AsyncConnection, id: str, owner: str) -> bool:
    """Let a link give way again that holds only while what had replaced it is hidden. False for any other."""
    ends = hidden.c.row_id.endswith(f" {owner}", autoescape=True)
    mine = (hidden.c.kind == "replaced", hidden.c.row_id.startswith(f"{id} ", autoescape=True), ends)
    entry = await connection.scalar(select(hidden.c.row_id).where(*mine).limit(1))
    if entry is None:
        return False
    await _give_way(connection, id, owner, entry.split(" ", 2)[1])
    return True


async def _revive(connection: AsyncConnection, forgetting: str, reach: Reach, now: datetime) -> None:
    """Let hold again what hidden links had replaced, and enter that. What is hidden itself leads on to what
    it had replaced."""
    waiting, seen = sorted(reach.links), set[Link]()
    while waiting:
        by, owner = waiting.pop()
        if (by, owner) in seen or not await _hides(connection, by, owner):
            continue
        seen.add((by, owner))
        older = and_(memory_owners.c.superseded_by == by, memory_owners.c.owner == owner)
        gave_way = and_(older, memory_owners.c.memory_id != by, memory_owners.c.superseded_at.is_not(None))
        query = select(memory_owners, memories.c.user_id, unexpired(now).label("lasts"))
        query = query.join(memories, memories.c.id == memory_owners.c.memory_id).where(gave_way)
        for row in await connection.execute(query.order_by(memory_owners.c.superseded_at.desc())):
            id = link_id(row.memory_id, owner)
            is_hidden = bool(await still_hidden(connection, "link", [id]))
            own = row.user_id == reach.person or owner == user_key(reach.person)
            holds = row.lasts and (reach.revives if own else row.reason != CORRECTED)
            if not is_hidden and (not holds or await _holder(connection, row)):
                continue
            await _give_way(connection, row.memory_id, owner, row.memory_id if is_hidden else None)
            entry = {"forgetting_id": forgetting, "kind": "replaced"}
            await connection.execute(
                insert(hidden).values(**entry, row_id=replaced_id(row.memory_id, by, owner))
            )
            if is_hidden:
                waiting.append((row.memory_id, owner))


async def _is_there(connection: AsyncConnection, id: str, owner: str) -> bool:
    return await connection.scalar(select(memory_owners.c.memory_id).where(_at(id, owner))) is not None


async def _hides(connection: AsyncConnection, id: str, owner: str) -> bool:
    """Whether a hidden link would hold."""
    return await connection.scalar(select(memory_owners.c.superseded_by).where(_at(id, owner))) == id


async def _replace_again(connection: AsyncConnection, own: Collection[str], owners: Collection[str]) -> None:
    """Restore the replacements by links that are not hidden any more: of the entries that were deleted, and
    of those that other forgettings have. A deleted one whose link is still hidden passes to what hides it."""
    query = select(hidden.c.row_id).where(hidden.c.kind == "replaced")
    others = [id for id in await connection.scalars(query) if id.split(" ", 2)[2] in owners]
    for entry in {*own, *others}:
        id, by, owner = entry.split(" ", 2)
        if await _hides(connection, by, owner):
            if entry in own:
                await _pass_on(connection, entry, link_id(by, owner))
            continue
        if await _is_there(connection, by, owner):
            await _give_way(connection, id, owner, by)


async def _pass_on(connection: AsyncConnection, entry: str, hiding: str) -> None:
    by = select(hidden.c.forgetting_id).where(hidden.c.kind == "link", hidden.c.row_id == hiding).limit(1)
    forgetting = await connection.scalar(by)
    if forgetting is not None:
        row = {"forgetting_id": forgetting, "kind": "replaced", "row_id": entry}
        await connection.execute(insert(hidden).values(**row))


async def undoable(connection: AsyncConnection, id: str, user: str, now: datetime) -> Any:
    """The person's forgetting with this id, or with these first eight characters. Raises NotFound if it can
    no longer be undone."""
    mine = (forgettings.c.person == user, forgettings.c.why == "forgotten", forgettings.c.until > now)
    rows = await connection.execute(
        select(forgettings).where(begins(forgettings.c.id, id), *mine).with_for_update()
    )
    found = rows.all()
    if len(found) != 1:
        raise NotFound(f"nothing forgotten as {id!r} can be brought back: it is gone for good")
    return found[0]


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
    whole = await entries.rows_of(connection, edits)
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
