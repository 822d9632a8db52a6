"""User contexts in SQL: one row per entry, with the place of the statement.

In private, the latest statement from anywhere counts. In a place, only statements from that place or the
places around it count: a private statement may not affect a channel, not even indirectly. How somebody
wants to be answered, and their time zone, are no secret: of these the latest counts everywhere.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.derived import MEMORY_SUMMARY, memory_summary_id
from memory.facts.derived.lost import repeats
from memory.facts.derived.sources import entry_id
from memory.people.profile import UserContext
from memory.people.profile_entries import READ_EVERYWHERE, Entry, context_of, merged
from memory.sql.engine import Database
from memory.sql.rests_on import let_go
from memory.sql.tables import Utc, context_entries, memories, messages, rests_on


class ProfileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, user: str, place: Place, now: datetime) -> UserContext:
        """What a turn in `place` may know about the user. Facts and tasks are stored elsewhere."""
        return context_of(await self.readable(user, place, now))

    async def readable(self, user: str, place: Place, now: datetime) -> list[Entry]:
        """The entries that may be read in this place. Leaves out those that rest on an expired fact, and
        memory summaries of other places."""
        given = {"user": user, "now": now, "summary": memory_summary_id(user, place)}
        if not place.private:
            given["around"] = [containing.key for containing in place.containing()]
        rows = await self._database.rows(_READABLE[place.private], given)
        outlived = {_key(row) for row in rows if _outlived(row)}
        found = {_key(row): _entry(row) for row in rows if _key(row) not in outlived}
        return [
            entry
            for (of, _, _), entry in found.items()
            if entry.field != MEMORY_SUMMARY or of == place.stored
        ]

    async def entries(self, user: str, place: Place) -> list[Entry]:
        """The stored entries from exactly this place."""
        async with self._database.read() as connection:
            return await _held(connection, user, place)

    async def merge(
        self, user: str, place: Place, entries: Sequence[Entry], now: datetime | None = None
    ) -> list[Entry]:
        """Merge entries from `place`. The later of two statements wins, whoever writes first. Returns the
        entries that add something new; a repetition only updates the time.

        With `now`, entries are what is said by now: where the person has entries from a time after `now`, the
        clock has gone back since, and what is said is dated after them.
        """
        async with self._database.read() as connection:
            entries = await _dated(connection, user, entries, now)
        known = await self.entries(user, place)
        if merged(known, entries) == known:
            return []
        async with self._database.write(lock=[_lock(user)]) as connection:
            return await self._merge(connection, user, place, entries)

    async def merge_in(
        self,
        connection: AsyncConnection,
        user: str,
        place: Place,
        entries: Sequence[Entry],
        now: datetime | None = None,
    ) -> list[Entry]:
        """Like `merge`, in the caller's transaction, which locks this user's context until it ends."""
        if entries and not self._database.sqlite:
            alone = func.pg_advisory_xact_lock(func.hashtextextended(_lock(user), 0))
            await connection.execute(select(alone))
        entries = await _dated(connection, user, entries, now)
        return await self._merge(connection, user, place, entries)

    async def _merge(
        self, connection: AsyncConnection, user: str, place: Place, entries: Sequence[Entry]
    ) -> list[Entry]:
        known = {_id(entry): entry for entry in await _held(connection, user, place)}
        after = {_id(entry): entry for entry in merged(list(known.values()), entries)}
        where = {"user_id": user, "place": place.stored}
        removed = [id for id in known if id not in after]
        changed = [entry for id, entry in after.items() if known.get(id) != entry]
        await _forget_sources(connection, user, place, [*removed, *map(_id, changed)])
        if removed:
            given = [
                {"of_user": user, "of_place": place.stored, "of_field": f, "of_item": i} for f, i in removed
            ]
            await connection.execute(_DELETE, given)
        if changed:
            rows = [where | _row(entry) for entry in changed]
            put = self._database.insert(context_entries)
            latest = {name: put.excluded[name] for name in ("value", "said_at", "message_id")}
            await connection.execute(
                put.on_conflict_do_update(index_elements=_KEY, set_=latest),
                rows,
            )
        emptied = {field for field, _ in removed}
        return [entry for entry in changed if _is_new(entry, known.get(_id(entry)), emptied)]


_KEY = ("user_id", "place", "field", "item")

_EXPIRED = (
    select(rests_on.c.source_id.label("message_id"), memories.c.content)
    .join(memories, memories.c.id == rests_on.c.derived_id)
    .where(rests_on.c.how == "stated", memories.c.expires_at <= bindparam("now", type_=Utc()))
    .subquery("expired")
)
_OUTLIVED = exists().where(
    rests_on.c.derived_id == bindparam("summary"),
    memories.c.id == rests_on.c.source_id,
    memories.c.expires_at <= bindparam("now", type_=Utc()),
)
_WITH_EXPIRED = (
    select(
        context_entries, _EXPIRED.c.content.label("expired"), messages.c.author, _OUTLIVED.label("outlived")
    )
    .outerjoin(_EXPIRED, _EXPIRED.c.message_id == context_entries.c.message_id)
    .outerjoin(messages, messages.c.id == context_entries.c.message_id)
    .where(context_entries.c.user_id == bindparam("user"))
)
"""A row for each entry and each expired fact that its message states."""

_AROUND = or_(
    context_entries.c.place.in_(bindparam("around", expanding=True)),
    context_entries.c.field.in_(READ_EVERYWHERE),
)
_READABLE = {True: _WITH_EXPIRED, False: _WITH_EXPIRED.where(_AROUND)}
"""The rows that may be read in private, where all are, and in a place. Built once: building them takes longer
than running them."""

_DELETE = delete(context_entries).where(
    context_entries.c.user_id == bindparam("of_user"),
    context_entries.c.place == bindparam("of_place"),
    context_entries.c.field == bindparam("of_field"),
    context_entries.c.item == bindparam("of_item"),
)


async def _dated(
    connection: AsyncConnection, user: str, entries: Sequence[Entry], now: datetime | None
) -> Sequence[Entry]:
    """The entries, after those of the person from a time that has not come yet."""
    if now is None or not entries:
        return entries
    said_at = context_entries.c.said_at
    ahead = select(func.max(said_at)).where(context_entries.c.user_id == user, said_at > now)
    newest: datetime | None = (await connection.execute(ahead)).scalar()
    if newest is None:
        return entries
    return [replace(entry, said_at=newest + timedelta(microseconds=1)) for entry in entries]


async def _held(connection: AsyncConnection, user: str, place: Place) -> list[Entry]:
    query = select(context_entries).where(
        context_entries.c.user_id == user, context_entries.c.place == place.stored
    )
    found = [_entry(row) for row in await connection.execute(query)]
    return sorted(found, key=_id)  # in Python's order, which is that of `merged`


async def _forget_sources(
    connection: AsyncConnection, user: str, place: Place, gone: Collection[tuple[str, str]]
) -> None:
    """Delete the notes of the messages in which entries may have been said, once they say something else."""
    ids = [entry_id(user, place.stored, field, item) for field, item in gone]
    if ids:
        await let_go(connection, ids)


def _lock(user: str) -> str:
    return f"context:{user}"


def _id(entry: Entry) -> tuple[str, str]:
    return entry.field, entry.item


def _is_new(entry: Entry, before: Entry | None, emptied: Collection[str]) -> bool:
    """Whether the entry differs from the known one, or empties a list."""
    return entry.value != (before.value if before else "") or (not entry.value and entry.field in emptied)


def _row(entry: Entry) -> dict[str, Any]:
    return asdict(entry)


def _entry(row: Any) -> Entry:
    return Entry(row.field, row.item, row.value, row.said_at, row.message_id)


def _key(row: Any) -> tuple[str, str, str]:
    return row.place, row.field, row.item


def _outlived(row: Any) -> bool:
    """Whether the entry rests on a fact that has expired."""
    if row.field == MEMORY_SUMMARY:
        return bool(row.outlived)
    return row.expired is not None and repeats(row.value, row.expired, "", row.author)
