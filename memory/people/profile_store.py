"""User contexts in SQL: one row per entry, with the place of the statement.

In private, the latest statement from anywhere counts. In a place, only statements from that place or the
places around it count: a private statement may not affect a channel, not even indirectly.
"""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.derived import MEMORY_SUMMARY
from memory.people.profile import Entry, UserContext, context_of, merged
from memory.sql.engine import Database
from memory.sql.tables import context_entries


class ProfileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, user: str, place: Place) -> UserContext:
        """What a turn in `place` may know about the user. Facts and tasks are stored elsewhere."""
        query = select(context_entries).where(context_entries.c.user_id == user, _readable_in(place))
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return context_of(
            _entry(row) for row in rows if row.field != MEMORY_SUMMARY or row.place == place.stored
        )

    async def entries(self, user: str, place: Place) -> list[Entry]:
        """The stored entries from exactly this place."""
        async with self._database.read() as connection:
            return await _held(connection, user, place)

    async def merge(self, user: str, place: Place, entries: Sequence[Entry]) -> list[Entry]:
        """Merge entries from `place`. The later of two statements wins, whoever writes first. Returns the
        entries that add something new; a repetition only updates the time."""
        known = await self.entries(user, place)
        if merged(known, entries) == known:
            return []
        async with self._database.write(lock=[_lock(user)]) as connection:
            return await self._merge(connection, user, place, entries)

    async def merge_in(
        self, connection: AsyncConnection, user: str, place: Place, entries: Sequence[Entry]
    ) -> list[Entry]:
        """Like `merge`, in the caller's transaction, which locks this user's context until it ends."""
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
        removed = [id for id in known if id not in after]
        changed = [entry for id, entry in after.items() if known.get(id) != entry]
        if removed:
            given = [
                {"of_user": user, "of_place": place.stored, "of_field": f, "of_item": i} for f, i in removed
            ]
            await connection.execute(_DELETE, given)
        if changed:
            rows = [where | _row(entry) for entry in changed]
            put = self._database.insert(context_entries)
            latest = {"value": put.excluded.value, "said_at": put.excluded.said_at}
            await connection.execute(
                put.on_conflict_do_update(index_elements=_KEY, set_=latest),
                rows,
            )
        emptied = {field for field, _ in removed}
        return [entry for entry in changed if _is_new(entry, known.get(_id(entry)), emptied)]


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


def _readable_in(place: Place) -> ColumnElement[bool]:
    """True for the user's rows that may be read in this place; in private, for all."""
    if place.private:
        return true()
    return context_entries.c.place.in_([around.key for around in place.containing()])


def _lock(user: str) -> str:
    return f"context:{user}"


def _id(entry: Entry) -> tuple[str, str]:
    return entry.field, entry.item


def _is_new(entry: Entry, before: Entry | None, emptied: Collection[str]) -> bool:
    """Whether the entry differs from the known one, or empties a list."""
    return entry.value != (before.value if before else "") or (not entry.value and entry.field in emptied)


def _row(entry: Entry) -> dict[str, Any]:
    return {"field": entry.field, "item": entry.item, "value": entry.value, "said_at": entry.said_at}


def _entry(row: Any) -> Entry:
    return Entry(row.field, row.item, row.value, row.said_at)
