"""Store the entries of profiles, each with the place of the statement.

In private, the latest statement from anywhere counts. In a place, only statements from there or the places
around it count, so that nothing private shows; how somebody wants to be answered, and their time zone, count
everywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import and_, bindparam, delete, exists, func, not_, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.facts.derived import MEMORY_SUMMARY, entry_id
from memory.people.profile import UserContext
from memory.people.profile_entries import READ_EVERYWHERE, Entry, context_of, merged
from memory.sql.engine import Database
from memory.sql.hidden import ENTRY_IS_HIDDEN, ENTRY_IS_WITHDRAWN, MESSAGE_IS_HIDDEN, show
from memory.sql.rests_on import let_go, record_each
from memory.sql.tables import Utc, context_entries, evidence, evidence_ids, memories, messages, rests_on
from memory.sql.tables.evidence import CODES


class ProfileStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, user: str, place: Place, now: datetime) -> UserContext:
        """Return what a turn in `place` may know of the user. Facts and tasks are stored elsewhere."""
        return context_of(await self.readable(user, place, now))

    async def zone(self, user: str, place: Place, now: datetime) -> tzinfo:
        """Return the time zone of the user, as far as it may be read in `place`; else this machine's."""
        return (await self.view(user, place, now)).zone

    async def readable(self, user: str, place: Place, now: datetime) -> list[Entry]:
        """Return the entries that may be read here, without summaries of other places or expired facts."""
        given = {"user": user, "now": now, "here": place.stored}
        if not place.private:
            given["around"] = [containing.key for containing in place.containing()]
        rows = await self._database.rows(_READABLE[place.private], given)
        return _entries((row, row.shown) for row in rows)

    async def entries(self, user: str, place: Place) -> list[Entry]:
        """Return the stored entries from exactly this place."""
        async with self._database.read() as connection:
            return await _held(connection, user, place)

    async def merge(
        self, user: str, place: Place, entries: Sequence[Entry], now: datetime | None = None
    ) -> None:
        """Merge entries from `place`; the later statement wins, whoever writes first.

        With `now` they are said now: dated after those of the person from a time that has not come yet, since
        the clock has gone back.
        """
        async with self._database.read() as connection:
            known, dated = await _held(connection, user, place), await _dated(connection, user, entries, now)
        if merged(known, dated) != known:
            async with self._database.write() as connection:
                await self.merge_in(connection, user, place, entries, now)

    async def merge_in(
        self,
        connection: AsyncConnection,
        user: str,
        place: Place,
        entries: Sequence[Entry],
        now: datetime | None = None,
    ) -> None:
        """Merge in the caller's transaction, which locks this user's context until it ends."""
        if entries and not self._database.sqlite:
            alone = func.pg_advisory_xact_lock(func.hashtextextended(f"context:{user}", 0))
            await connection.execute(select(alone))
        entries = await _dated(connection, user, entries, now)
        known = {_id(entry): entry for entry in await _held(connection, user, place)}
        after = {_id(entry): entry for entry in merged(list(known.values()), entries)}
        removed = [id for id in known if id not in after]
        changed = [_with_messages(e, known.get(id)) for id, e in after.items() if known.get(id) != e]
        ids = {id: entry_id(user, place.stored, *id) for id in (*removed, *map(_id, changed))}
        said_in = [id for (field, _), id in ids.items() if field != MEMORY_SUMMARY]
        await let_go(connection, said_in)  # consolidation records the sources of a summary
        if removed:
            gone = [ids[id] for id in removed]
            await connection.execute(delete(context_entries).where(context_entries.c.id.in_(gone)))
        if changed:
            await show(connection, "entry", ids.values())
            await show(connection, "told", ids.values())
            key = {"user_id": user, "place": place.stored}
            said = ("field", "item", "value", "said_at")
            rows = [key | {name: getattr(e, name) for name in said} | {"id": ids[_id(e)]} for e in changed]
            put = insert(context_entries)
            latest = {name: put.excluded[name] for name in ("value", "said_at")}
            await connection.execute(put.on_conflict_do_update(index_elements=_KEY, set_=latest), rows)
            told = ((ids[_id(entry)], message) for entry in changed for message in entry.messages)
            await record_each(connection, [(entry, message, "stated") for entry, message in told])


_KEY = ("user_id", "place", "field", "item")

_entry, _source = evidence_ids.alias("entry_ids"), evidence_ids.alias("source_ids")
_ENTRIES = (
    select(context_entries, messages.c.id.label("shown"), _source.c.id.label("message"))
    .outerjoin(_entry, _entry.c.id == context_entries.c.id)
    .outerjoin(evidence, and_(evidence.c.derived == _entry.c.number, evidence.c.how == CODES["stated"]))
    .outerjoin(_source, _source.c.number == evidence.c.source)
    .outerjoin(messages, and_(messages.c.id == _source.c.id, ~MESSAGE_IS_HIDDEN))
    .where(context_entries.c.user_id == bindparam("user"), ~ENTRY_IS_HIDDEN)
)
"""A row for each entry and each message that states it. `shown` is NULL if the message is hidden."""
_IN_SHORT = context_entries.c.field == MEMORY_SUMMARY
_OUTLIVED = exists().where(
    rests_on.c.derived_id == context_entries.c.id,
    memories.c.id == rests_on.c.source_id,
    memories.c.expires_at <= bindparam("now", type_=Utc()),
)
_UNREAD = and_(_IN_SHORT, or_(context_entries.c.place != bindparam("here"), _OUTLIVED))
_AROUND = or_(
    and_(context_entries.c.place.in_(bindparam("around", expanding=True)), ~ENTRY_IS_WITHDRAWN),
    context_entries.c.field.in_(READ_EVERYWHERE),
)
_READABLE = {True: _ENTRIES.where(not_(_UNREAD)), False: _ENTRIES.where(not_(_UNREAD), _AROUND)}
"""The rows that may be read in private, and in a place. Built once: building takes longer than running."""
_HELD = _ENTRIES.where(context_entries.c.place == bindparam("here"))


async def _dated(
    connection: AsyncConnection, user: str, entries: Sequence[Entry], now: datetime | None
) -> Sequence[Entry]:
    """Return the entries, dated after the person's entries with times in the future."""
    if now is None or not entries:
        return entries
    said_at = context_entries.c.said_at
    ahead = select(func.max(said_at)).where(context_entries.c.user_id == user, said_at > now)
    newest: datetime | None = (await connection.execute(ahead)).scalar()
    if newest is None:
        return entries
    return [replace(entry, said_at=newest + timedelta(microseconds=1)) for entry in entries]


async def _held(connection: AsyncConnection, user: str, place: Place) -> list[Entry]:
    rows = await connection.execute(_HELD, {"user": user, "here": place.stored})
    found = _entries((row, row.message) for row in rows)
    return sorted(found, key=_id)  # in Python's order, which is that of `merged`


def _entries(rows: Iterable[tuple[Any, str | None]]) -> list[Entry]:
    """Return the entries, from rows of one entry and one message each."""
    found: dict[str, Entry] = {}
    for row, message in rows:
        entry = found.get(row.id) or Entry(row.field, row.item, row.value, row.said_at)
        found[row.id] = replace(entry, messages=entry.messages | ({message} if message else set()))
    return list(found.values())


def _with_messages(entry: Entry, before: Entry | None) -> Entry:
    """Return the entry with the earlier messages that state the same."""
    if before is None or before.value != entry.value:
        return entry
    return replace(entry, messages=entry.messages | before.messages)


def _id(entry: Entry) -> tuple[str, str]:
    return entry.field, entry.item
