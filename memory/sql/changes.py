"""Log changes, so that a cached index knows which rows to read again.

Triggers (`memory.sql.tables.triggers`) write a row for each owner of a changed row, in the transaction that
changes it. Rows are only added, so writers do not wait for each other.

PostgreSQL numbers rows before they are committed, so a number does not tell which rows were visible. There a
`Moment` is a snapshot, and a change is new if its transaction was not visible in it. SQLite has a single
writer, so there a moment is a number.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, func, select, text, update

from memory.sql.engine import Database
from memory.sql.messages.lines import Anchor, to_anchors
from memory.sql.tables import changes, index_todo

Moment = str
"""A state of the database. The log lists the changes since then."""
LATEST = 50_000
"""How many of the newest changes `cut` keeps. An index that has not read the deleted ones is loaded anew."""
SLICE = 2_000
"""How many changes one transaction deletes."""
AROUND = "around "
"""The prefix of an owner that is a place's key, for messages that are hidden, shown or moved there. That
changes the windows of the messages around them, also for readers of only those."""
DOCUMENTS = "documents of "
"""The prefix of an owner key for chunks of documents."""
EVERYBODY = "everybody"
"""The owner of a change after which every process must drop its cached rows, such as an erasure."""

_FIRST, _LAST = (f"coalesce((SELECT {end}(seq) FROM changes), 0)" for end in ("min", "max"))
"""Two queries, because SQLite finds one end of an index at once, but reads the whole index for both."""
_MOMENT = {True: f"CAST({_LAST} AS TEXT)", False: "pg_current_snapshot()::text"}
IS_SINCE = {
    True: "changes.tx = 0 AND changes.seq > CAST(:since AS INTEGER)",
    # The last condition excludes transaction numbers of another cluster, if this database is a copy from it.
    False: """changes.tx >= pg_snapshot_xmin(CAST(CAST(:since AS text) AS pg_snapshot))::text::bigint
        AND NOT pg_visible_in_snapshot(changes.tx::text::xid8, CAST(CAST(:since AS text) AS pg_snapshot))
        AND pg_visible_in_snapshot(changes.tx::text::xid8, pg_current_snapshot())""",
}
"""The condition for changes that are new since a moment, keyed by whether the database is SQLite."""


_NOW = {
    sqlite: f"SELECT {moment} AS moment, {_FIRST} AS first, {_LAST} AS last"
    for sqlite, moment in _MOMENT.items()
}
_READ = {
    sqlite: text(
        f"""SELECT now.moment, now.first, now.last, changes.owner, changes.kind, changes.id,
            messages.conversation_id, messages.place, messages.user_id, messages.seq
        FROM ({now}) AS now LEFT JOIN changes ON changes.owner IN :owners AND {IS_SINCE[sqlite]}
        LEFT JOIN messages ON changes.kind = 'message' AND messages.id = changes.id"""
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
    """The changes since a moment."""

    moment: Moment
    """The state of the database when the log was read."""
    first: int
    """The number of the oldest change in the log. An index that last read a lower one may have missed
    changes."""
    last: int
    changes: Sequence[Change] = ()
    anchors: Sequence[Anchor] = ()
    """The positions of the changed messages that are stored, hidden or not."""


async def now(database: Database) -> Read:
    """Return the state of the database at this moment."""
    [row] = await database.rows(text(_NOW[database.sqlite]))
    return Read(row.moment, row.first, row.last)


async def read(database: Database, owners: Collection[str], since: Moment) -> Read:
    """Return the changes for these owners since a moment."""
    rows = await database.rows(_READ[database.sqlite], {"owners": list(owners), "since": since})
    found = [Change(row.owner, row.kind, row.id) for row in rows if row.owner is not None]
    anchors = to_anchors({row.id: row for row in rows if row.seq is not None}.values())
    return Read(rows[0].moment, rows[0].first, rows[0].last, found, anchors)


async def erase(database: Database, owner: str) -> None:
    """Remove an erased owner from the log, and make every process drop its cached rows. Entries that a
    server's index still has to remove stay, without the owner's name."""
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
