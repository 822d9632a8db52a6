"""User contexts in SQL: one row an entry, with where it was told.

In private, the latest of what the user told anywhere holds. In a place, only what they told there, or in the
places around it, is known: what was said in private must not show in a channel, not even by its effect.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, select, true
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.people.profile import MEMORY_SUMMARY, Entry, UserContext, context_of, merged
from memory.sql.engine import Database
from memory.sql.tables import context_entries


class ProfileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, user: str, place: Place) -> UserContext:
        """What may be known of the user when they speak in `place`; without facts and tasks, which are kept
        elsewhere."""
        query = select(context_entries).where(context_entries.c.user_id == user, _told_for(place))
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return context_of(
            _entry(row) for row in rows if row.field != MEMORY_SUMMARY or row.place == place.stored
        )

    async def entries(self, user: str, place: Place) -> list[Entry]:
        """What was told in exactly this place, as it is kept."""
        async with self._database.read() as connection:
            return await _held(connection, user, place)

    async def merge(self, user: str, place: Place, entries: Sequence[Entry]) -> list[Entry]:
        """Add what was told there. Of two statements the later one holds, whoever writes first. Returns those
        that say something new; a repetition only moves the time of what is known. Where nothing changes,
        nothing is written."""
        known = await self.entries(user, place)
        if merged(known, entries) == known:
            return []
        async with self._database.write(lock=[_lock(user)]) as connection:
            return await self._merge(connection, user, place, entries)

    async def merge_in(
        self, connection: AsyncConnection, user: str, place: Place, entries: Sequence[Entry]
    ) -> list[Entry]:
        """The same in the caller's transaction, which alone decides on this user's context until it ends."""
        if entries and not self._database.sqlite:
            alone = func.pg_advisory_xact_lock(func.hashtextextended(_lock(user), 0))
            await connection.execute(select(alone))
        return await self._merge(connection, user, place, entries)

    async def _merge(
        self, connection: AsyncConnection, user: str, place: Place, entries: Sequence[Entry]
    ) -> list[Entry]:
        known = {_id(entry): entry for entry in await _held(connection, user, place)}
        after = {_id(entry): entry for entry in merged(list(known.values()), entries)}
        where = {"user_id": user, "place": place.stored}
        gone = [id for id in known if id not in after]
        told = [entry for id, entry in after.items() if known.get(id) != entry]
        if gone:
            given = [
                {"of_user": user, "of_place": place.stored, "of_field": f, "of_item": i} for f, i in gone
            ]
            await connection.execute(_DELETE, given)
        if told:
            rows = [where | _row(entry) for entry in told]
            insert = insert_sqlite if self._database.sqlite else insert_postgresql
            put = insert(context_entries)
            changed = {"value": put.excluded.value, "said_at": put.excluded.said_at}
            await connection.execute(
                put.on_conflict_do_update(index_elements=_KEY, set_=changed),
                rows,
            )
        emptied = {field for field, _ in gone}
        return [entry for entry in told if _is_new(entry, known.get(_id(entry)), emptied)]


_KEY = ("user_id", "place", "field", "item")

_DELETE = delete(context_entries).where(
    context_entries.c.user_id == bindparam("of_user"),
    context_entries.c.place == bindparam("of_place"),
    context_entries.c.field == bindparam("of_field"),
    context_entries.c.item == bindparam("of_item"),
)


async def _held(connection: AsyncConnection, user: str, place: Place) -> list[Entry]:
    query = select(context_entries).where(
        context_entries.c.user_id == user, context_entries.c.place == place.stored
    )
    found = [_entry(row) for row in await connection.execute(query)]
    return sorted(found, key=_id)  # in Python's order, which is that of `merged`


def _told_for(place: Place) -> ColumnElement[bool]:
    """Of the user's rows those that may be read from here; in private, all."""
    if place.private:
        return true()
    return context_entries.c.place.in_([around.key for around in place.containing()])


def _lock(user: str) -> str:
    return f"context:{user}"


def _id(entry: Entry) -> tuple[str, str]:
    return entry.field, entry.item


def _is_new(entry: Entry, before: Entry | None, emptied: Collection[str]) -> bool:
    """It says something else than what was known, or took a list away."""
    return entry.value != (before.value if before else "") or (not entry.value and entry.field in emptied)


def _row(entry: Entry) -> dict[str, Any]:
    return {"field": entry.field, "item": entry.item, "value": entry.value, "said_at": entry.said_at}


def _entry(row: Any) -> Entry:
    return Entry(row.field, row.item, row.value, row.said_at)
