"""Log changes, so that an index of one reader knows what to read again.

Triggers (`memory.sql.tables.triggers`) write a row for each owner of a changed row, in the transaction that
changes it. Rows are only added, so writers do not wait for each other.

PostgreSQL numbers rows before they are committed, so a number does not say what was visible. There a `Moment`
is a snapshot, and a change is new if its transaction was not visible in it. SQLite has one writer, and a
moment is a number.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, func, select, text, update

from memory.sql.engine import Database
from memory.sql.tables import changes, index_todo

Moment = str
"""A state of the database, of which the log tells what has changed since."""
LATEST = 50_000
"""How many of the newest changes `cut` leaves. What has not read the others is loaded anew."""
SLICE = 2_000
"""How many changes one transaction deletes."""
AROUND = "around "
"""Before a place's key: of messages that are hidden, shown or moved there, which changes the windows of the
messages around them, also for whoever has only these."""
DOCUMENTS = "documents of "
"""Before the key of those who may read documents: of their chunks."""
EVERYBODY = "everybody"
"""The owner of a change after which nothing that was read before is to stay in memory, as of an erasure."""

_FIRST, _LAST = (f"coalesce((SELECT {end}(seq) FROM changes), 0)" for end in ("min", "max"))
"""Each in a query of its own: SQLite seeks one end of an index, and for both would read all of it."""
_MOMENT = {True: f"CAST({_LAST} AS TEXT)", False: "pg_current_snapshot()::text"}
IS_SINCE = {
    True: "changes.tx = 0 AND changes.seq > CAST(:since AS INTEGER)",
    # The last condition is false of numbers that come from the cluster of which this database is a copy.
    False: """changes.tx >= pg_snapshot_xmin(CAST(CAST(:since AS text) AS pg_snapshot))::text::bigint
        AND NOT pg_visible_in_snapshot(changes.tx::text::xid8, CAST(CAST(:since AS text) AS pg_snapshot))
        AND pg_visible_in_snapshot(changes.tx::text::xid8, pg_current_snapshot())""",
}
"""By whether it is SQLite: the condition on `changes` for what is new since a moment."""


_NOW = {
    sqlite: f"SELECT {moment} AS moment, {_FIRST} AS first, {_LAST} AS last"
    for sqlite, moment in _MOMENT.items()
}
_READ = {
    sqlite: text(
        f"""SELECT now.moment, now.first, now.last, changes.owner, changes.kind, changes.id
        FROM ({now}) AS now LEFT JOIN changes ON changes.owner IN :owners AND {IS_SINCE[sqlite]}"""
    ).bindparams(bindparam("owners", expanding=True))
    for sqlite, now in _NOW.items()
}


_ERASED = {
    sqlite: text(f"INSERT INTO changes (tx, owner, kind, id) VALUES ({tx}, '{EVERYBODY}', 'all', '')")
    for sqlite, tx in ((True, "0"), (False, "pg_current_xact_id()::text::bigint"))
}


class Change(NamedTuple):
    owner: str
    kind: str
    id: str


class Read(NamedTuple):
    """What has changed since a moment."""

    moment: Moment
    """The state in which it was read."""
    first: int
    """The number of the oldest change in the log. What was read when the newest had a lower one is not
    known to be whole."""
    last: int
    changes: Sequence[Change]


async def now(database: Database) -> Read:
    """Return the state of the database at this moment."""
    [row] = await database.rows(text(_NOW[database.sqlite]))
    return Read(row.moment, row.first, row.last, ())


async def read(database: Database, owners: Collection[str], since: Moment) -> Read:
    """Return what has changed for these owners since a moment."""
    rows = await database.rows(_READ[database.sqlite], {"owners": list(owners), "since": since})
    found = [Change(row.owner, row.kind, row.id) for row in rows if row.owner is not None]
    return Read(rows[0].moment, rows[0].first, rows[0].last, found)


async def erase(database: Database, owner: str) -> None:
    """Name an owner who is erased no more, and let every process forget what it has read. What a server's
    index is to remove stays, as nobody's."""
    theirs = (owner, f"{DOCUMENTS}{owner}")
    await _delete(database, changes.c.owner.in_(theirs))
    async with database.write() as connection:
        todo = update(index_todo).where(index_todo.c.owner.in_(theirs))
        await connection.execute(todo.values(owner=EVERYBODY))
        await connection.execute(_ERASED[database.sqlite])


async def cut(database: Database) -> None:
    """Delete all but the newest changes, in slices of some milliseconds."""
    [[last]] = await database.rows(select(func.coalesce(func.max(changes.c.seq), 0)))
    await _delete(database, changes.c.seq <= last - LATEST)


async def _delete(database: Database, which: ColumnElement[bool]) -> None:
    some = select(changes.c.seq).where(which).limit(SLICE)
    while await database.run(delete(changes).where(changes.c.seq.in_(some))):  # noqa: ASYNC110
        await asyncio.sleep(0)  # others run
