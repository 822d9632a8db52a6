"""The queue of rows to send to an index on a server, or to embed: the table `index_todo`.

A trigger adds each change while `index_marks` has a row for such an index. A process claims rows in a short
transaction, works outside of it, and then deletes the claimed rows; later changes have rows of their own. If
the marks of database and index differ, the first process to notice gives both a new mark, and all rows are
added, in slices.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Table, bindparam, delete, func, insert, literal, or_, select, text, true, update

from memory.index import Kind
from memory.sql.engine import Database
from memory.sql.tables import active_conversations, index_marks, index_todo, memories, messages
from memory.sql.tables import knowledge_chunks as chunks
from memory.sql.tables.columns import database_time

CLAIM = timedelta(seconds=30)
"""How long a claim lasts, by the database's clock."""
BATCH = 256
"""Rows that are claimed at a time."""
SLICE = 2_000
"""Rows that one transaction adds while an index is filled."""
EVERYBODYS = ""
"""The owner of rows that are added to fill an index."""

_TABLES: Mapping[Kind, Table] = {
    "memory": memories,
    "summary": active_conversations,
    "message": messages,
    "chunk": chunks,
}
_ENDS = database_time(CLAIM.total_seconds())
_free = or_(index_todo.c.until.is_(None), index_todo.c.until < database_time(0))
_oldest = select(index_todo.c.seq).where(_free).order_by(index_todo.c.seq).limit(BATCH)
_CLAIM = (
    update(index_todo)
    .where(index_todo.c.seq.in_(_oldest.with_for_update(skip_locked=True)))
    .values(until=_ENDS)
    .returning(index_todo.c.seq, index_todo.c.kind, index_todo.c.id)
)
_MARK = select(index_marks).where(index_marks.c.collection == bindparam("collection"))
_pending = (
    select(index_todo.c.owner, index_todo.c.kind, index_todo.c.id)
    .where(index_todo.c.owner.in_(bindparam("owners", expanding=True)))
    .distinct()
    .limit(BATCH + 1)
    .subquery()
)
_STATE = (
    select(index_marks.c.mark, index_marks.c.filling, _pending)
    .select_from(index_marks.outerjoin(_pending, true()))
    .where(index_marks.c.collection == bindparam("collection"))
)


class State(NamedTuple):
    """The state of an index on a server, as a search needs it."""

    mark: str
    pending: Mapping[Kind, Collection[str]] | None
    """The reader's rows that the index lacks so far; None if it is being filled, or if they are too many."""


class Claim(NamedTuple):
    seqs: Sequence[int]
    ids: Mapping[Kind, Collection[str]]


class Todo:
    """The queue for one index, named by its collection."""

    def __init__(self, database: Database, collection: str) -> None:
        self._database = database
        self.collection = collection

    async def mark(self) -> str | None:
        """Return the mark in the database; None if there is no such index."""
        rows = await self._database.rows(_MARK, {"collection": self.collection})
        return next((str(row.mark) for row in rows), None)

    async def state(self, owners: Collection[str]) -> State | None:
        """Return the state of the index for a search by these owner keys; None if there is no index."""
        given = {"collection": self.collection, "owners": [*owners, EVERYBODYS]}
        rows = await self._database.rows(_STATE, given)
        if not rows:
            return None
        if rows[0].filling is not None or len(rows) > BATCH or any(row.owner == EVERYBODYS for row in rows):
            return State(rows[0].mark, None)
        return State(rows[0].mark, _by_kind(row for row in rows if row.id))

    async def begin(self, wrong: str | None, *, force: bool = False) -> str | None:
        """Replace the `wrong` mark of the index by a new one, and delete the marks of other indexes. Without
        `force`, return None if another process did so within `CLAIM`."""
        new = str(uuid4())
        async with self._database.write() as connection:
            if not self._database.sqlite:
                # Running writers end first, and later ones see the mark, so no change is missed.
                await connection.execute(text("LOCK TABLE changes IN SHARE ROW EXCLUSIVE MODE"))
            rows = (await connection.execute(_MARK, {"collection": self.collection})).all()
            begun = select(index_marks.c.mark).where(index_marks.c.until > database_time(0))
            if rows and not force and (rows[0].mark != wrong or (await connection.scalars(begun)).all()):
                return None
            await connection.execute(delete(index_marks))
            await connection.execute(delete(index_todo))
            row = {"collection": self.collection, "mark": new, "filling": f"{next(iter(_TABLES))} "}
            await connection.execute(insert(index_marks).values(**row, until=_ENDS))
        return new

    async def enter(self) -> bool:
        """Add the next slice of all rows to the queue. Returns False if none is left."""
        async with self._database.write() as connection:
            found = (await connection.execute(_MARK.with_for_update(), {"collection": self.collection})).all()
            if not found or found[0].filling is None:
                return False
            kind, _, last = found[0].filling.partition(" ")
            id = _TABLES[kind].c.id
            ends = select(id).where(id > last).order_by(id).offset(SLICE - 1).limit(1)
            end = await connection.scalar(ends)
            rows = select(literal(EVERYBODYS), literal(kind), id).where(id > last)
            rows = rows if end is None else rows.where(id <= end)
            await connection.execute(insert(index_todo).from_select(["owner", "kind", "id"], rows))
            kinds = [*_TABLES]
            following = kinds[kinds.index(kind) + 1 :] if end is None else [kind]
            filling = f"{following[0]} {end or ''}" if following else None
            await connection.execute(update(index_marks).values(filling=filling))
        return True

    async def claim(self) -> Claim | None:
        """Claim the oldest unclaimed rows; None if there are none."""
        async with self._database.write() as connection:
            rows = (await connection.execute(_CLAIM)).all()
        return Claim([row.seq for row in rows], _by_kind(rows)) if rows else None

    async def done(self, claim: Claim) -> None:
        """Delete the claimed rows."""
        await self._database.run(delete(index_todo).where(index_todo.c.seq.in_(claim.seqs)))

    async def count(self) -> int:
        """Return how many rows are pending."""
        [[rows]] = await self._database.rows(select(func.count()).select_from(index_todo))
        return int(rows)


async def forget(database: Database) -> None:
    """Stop queueing changes, because there is no index on a server."""
    if await database.rows(select(index_marks.c.mark).limit(1)):
        async with database.write() as connection:
            await connection.execute(delete(index_marks))
            await connection.execute(delete(index_todo))


def _by_kind(rows: Iterable[Any]) -> dict[Kind, set[str]]:
    ids = defaultdict[Kind, set[str]](set)
    for row in rows:
        ids[row.kind].add(row.id)
    return ids
