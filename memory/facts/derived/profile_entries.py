"""Withholds entries of a profile, and the summaries of a person's facts, which are entries too."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, user_key
from memory.facts.derived.lost import SET_BY_HAND, Lost
from memory.facts.derived.sources import MEMORY_SUMMARY, entry_id, memory_summary_id
from memory.sql.rests_on import let_go
from memory.sql.tables import context_entries, rests_on

Row = Mapping[str, Any]


async def withhold_entries(
    connection: AsyncConnection, lost: Lost, emptied: Collection[str]
) -> tuple[list[Row], list[Row]]:
    """Empty the entries that rest on what is lost or on the `emptied` summaries. Returns the rows of the
    summaries of facts that were deleted, and those of the other entries that lost their value, with their
    possible `sources`."""
    written = (context_entries.c.user_id.in_(lost.people), context_entries.c.value != "")
    rows = (await connection.execute(select(context_entries).where(*written))).all() if lost.people else []
    in_short = [row for row in rows if row.field == MEMORY_SUMMARY]
    summaries = await _memory_summaries(connection, in_short, lost, lost.ids.union(emptied))
    for row in summaries:
        await connection.execute(delete(context_entries).where(_same(row)))
        await let_go(connection, [memory_summary_id(row.user_id, Place.of_key(row.place))])
    entries = [row for row in rows if row.field != MEMORY_SUMMARY]
    possible = await _possible_sources(connection, [_id(row) for row in entries if row.message_id is None])
    gone: list[Row] = []
    for row in entries:
        id = _id(row)
        said_in = possible.get(id, set())
        lost_one = not said_in.isdisjoint(lost.forgotten)
        if (lost_one or lost.takes(row)) and await _take(connection, row, lost):
            gone.append({**row._mapping, "sources": sorted(said_in)})
            if said_in:
                await let_go(connection, [id])
    return [dict(row._mapping) for row in summaries], gone


async def _possible_sources(connection: AsyncConnection, ids: Collection[str]) -> dict[str, set[str]]:
    """The messages in one of which each entry was said, where it is not known in which; by entry id."""
    found: dict[str, set[str]] = {}
    if ids:
        noted = select(rests_on).where(rests_on.c.derived_id.in_(ids))
        for row in await connection.execute(noted):
            found.setdefault(row.derived_id, set()).add(row.source_id)
    return found


def _id(row: Any) -> str:
    return entry_id(row.user_id, row.place, row.field, row.item)


async def _memory_summaries(
    connection: AsyncConnection, rows: Sequence[Any], lost: Lost, sources: Collection[str]
) -> list[Any]:
    """Those of these summaries of facts that rest on one of the `sources`, or on nothing recorded."""
    ids = {memory_summary_id(row.user_id, Place.of_key(row.place)): row for row in rows}
    if not ids:
        return []
    recorded: dict[str, set[str]] = {id: set() for id in ids}
    for source in await connection.execute(select(rests_on).where(rests_on.c.derived_id.in_(ids))):
        recorded[source.derived_id].add(source.source_id)
    return [
        row
        for id, row in ids.items()
        if lost.concerns(row.user_id, Place.of_key(row.place))
        and (not recorded[id] or not recorded[id].isdisjoint(sources))
    ]


async def _take(connection: AsyncConnection, row: Any, lost: Lost) -> bool:
    """Empty the entry. An empty value stays in place of a single one, so that an older one of another place
    does not return; after an expiry it may. What no longer holds in private alone stays as it is in its
    place, and is hidden in private."""
    if lost.owners is None or (row.place or user_key(row.user_id)) in lost.owners:
        taken = (
            delete(context_entries) if row.item or lost.expired else update(context_entries).values(value="")
        )
        await connection.execute(taken.where(_same(row)))
        return True
    if user_key(row.user_id) not in lost.owners:
        return False
    own = _same(row, place="")
    await connection.execute(delete(context_entries).where(own, context_entries.c.said_at <= row.said_at))
    if (await connection.execute(select(context_entries.c.value).where(own))).first() is None:
        after = row.said_at + timedelta(microseconds=1)
        hidden = {"place": "", "value": "", "said_at": after, "message_id": SET_BY_HAND}
        await connection.execute(insert(context_entries).values({**row._mapping, **hidden}))
    return False


def _same(row: Any, place: str | None = None) -> ColumnElement[bool]:
    return and_(
        context_entries.c.user_id == row.user_id,
        context_entries.c.place == (row.place if place is None else place),
        context_entries.c.field == row.field,
        context_entries.c.item == row.item,
    )
