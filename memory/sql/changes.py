"""The log of changes: which rows an index is to show otherwise. Every index follows it at its own pace.

Triggers (`memory.sql.tables.triggers`) write the kind and id of each row that an index is to show otherwise.
An index has a `Position` in the log, and follows it by loading each row that comes after: it puts its point,
or removes that of a row which is gone or which nobody may read.

PostgreSQL gives numbers before the commit, so a later one may be seen first. Positions are therefore ordered
by transaction, and an index follows only what every running transaction has passed. A search also reads the
rest (`ChangeLog.after`).
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.engine import Database
from memory.sql.tables import changes, index_positions
from memory.sql.tables.columns import database_time

KEPT = 50_000
"""How many of the newest changes `cut` leaves. To follow more takes an index longer than to be filled."""
SLICE = 2_000
"""How many changes one transaction of `cut` deletes."""
LEASE = timedelta(seconds=30)
"""How long one process makes an index on a server follow before another one may, by the clock of the
database."""
_LEASE_ENDS = database_time(LEASE.total_seconds())
CUT = "cut"


class Position(NamedTuple):
    """A place in the log, and in the order of the log."""

    tx: int
    seq: int


class Change(NamedTuple):
    position: Position
    kind: str
    id: str
    passed: bool
    """Whether no other change can come before it any more."""


START = Position(0, 0)
Unfollowed = tuple[Position | None, list[Change]]
"""Up to where an index has followed, and the oldest changes after that. None if it cannot go on there."""


async def windows_changed(connection: AsyncConnection, ids: Collection[str]) -> None:
    """In the caller's transaction, tell every index that the windows of these messages have changed, whose
    rows have not."""
    rows = [{"id": id} for id in sorted(ids)]
    if rows:
        await connection.execute(_INSERT[connection.dialect.name == "sqlite"], rows)


class ChangeLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def after(self, place: Position | str, limit: int) -> Unfollowed:
        """The oldest committed changes after a position, or after the one noted under a name."""
        noted = isinstance(place, str)
        given = {"name": place} if isinstance(place, str) else {"tx": place.tx, "seq": place.seq}
        rows = await self._database.rows(_AFTER[self._database.sqlite, noted], given | {"most": limit})
        position = None if isinstance(place, str) else place
        if noted and rows and rows[0].from_tx is not None:
            position = Position(rows[0].from_tx, rows[0].from_seq)
        if position is None or (rows and rows[0].cut):
            return None, []
        found = [
            Change(Position(row.tx, row.seq), row.kind, row.id, bool(row.passed)) for row in rows if row.id
        ]
        return position, found

    async def end(self) -> Position:
        """The newest change before which no other can come any more. An index that is filled from rows that
        are read after this has followed the log so far."""
        done = true() if self._database.sqlite else changes.c.tx < _OLDEST_RUNNING
        rows = await self._database.rows(_NEWEST.where(done).limit(1))
        return Position(*rows[0]) if rows else START

    async def leads_on_from(self, position: Position) -> bool:
        """Whether the log holds all that comes after the position. False where it was cut since, and where it
        ends before: then the index belongs to a newer database."""
        cut = select(index_positions.c.tx, index_positions.c.seq).where(index_positions.c.name == CUT)
        async with self._database.read() as connection:
            newest = (await connection.execute(_NEWEST.limit(1))).first()
            begins = (await connection.execute(cut)).first()
        ends = Position(*newest) if newest else START
        return Position(*(begins or START)) <= position <= ends

    async def cut(self) -> None:
        """Delete all but the newest changes, in slices of some milliseconds. An index that has not followed
        the others is filled again."""
        oldest = _NEWEST.offset(KEPT - 1).limit(1)
        async with self._database.write() as connection:
            if not (row := (await connection.execute(oldest)).first()):
                return
            await _place(connection, CUT, Position(*row))
        older = select(changes.c.seq).where(tuple_(*_literals(row)) > tuple_(*_ORDER)).limit(SLICE)
        while await self._database.run(delete(changes).where(changes.c.seq.in_(older))):  # noqa: ASYNC110
            await asyncio.sleep(0)  # others run


class Followed:
    """How far an index on a server has followed the log, in one row that the processes share. Whoever holds
    its lease may advance it."""

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder

    async def position(self, name: str) -> Position | None:
        """None if the index is still to be filled."""
        row = next(iter(await self._database.rows(_PLACE, {"name": name})), None)
        return None if row is None or row.tx is None else Position(row.tx, row.seq)

    async def lease(self, name: str) -> bool:
        """Take the lease, or renew it. False while another process has it."""
        held = {"holder": self._holder, "until": _LEASE_ENDS}
        free = or_(
            index_positions.c.holder.is_(None),
            index_positions.c.holder == self._holder,
            index_positions.c.until < database_time(0),
        )
        row = insert(index_positions).values(name=name, **held)
        row = row.on_conflict_do_update(index_elements=[index_positions.c.name], set_=held, where=free)
        return bool(await self._database.run(row))

    async def renew(self, name: str) -> bool:
        """Keep the lease. False if it was lost."""
        return await self._update(name, until=_LEASE_ENDS)

    async def advance(
        self, name: str, since: Position | None, position: Position, *, release: bool = False
    ) -> bool:
        """Note how far the index has followed since the position where that began; the last time, `release`
        the lease. False if the lease was lost, or the index is somewhere else by now."""
        there = (index_positions.c.tx, index_positions.c.seq)
        at = [
            column.is_not_distinct_from(value)
            for column, value in zip(there, since or (None,) * 2, strict=True)
        ]
        let_go = {"holder": None} if release else {}
        return await self._update(name, *at, tx=position.tx, seq=position.seq, **let_go)

    async def release(self, name: str) -> None:
        await self._update(name, holder=None)

    async def used(self, within: timedelta) -> set[str]:
        """The indexes that somebody has had the lease of within this time."""
        since = database_time(-within.total_seconds())
        leased = select(index_positions.c.name).where(index_positions.c.until >= since)
        return {row.name for row in await self._database.rows(leased)}

    async def _update(self, name: str, *where: ColumnElement[bool], **values: Any) -> bool:
        mine = (index_positions.c.name == name, index_positions.c.holder == self._holder)
        return bool(await self._database.run(update(index_positions).where(*mine, *where).values(**values)))

    async def forget(self, name: str) -> None:
        """The index is gone. Whoever has its lease loses it, since what they have put is gone too; whoever
        makes it anew fills it."""
        lost = update(index_positions).where(index_positions.c.name == name)
        await self._database.run(lost.values(tx=None, seq=None, holder=None))


async def _place(connection: AsyncConnection, name: str, position: Position) -> None:
    values = {"tx": position.tx, "seq": position.seq}
    row = insert(index_positions).values(name=name, **values)
    await connection.execute(row.on_conflict_do_update(index_elements=[index_positions.c.name], set_=values))


def _literals(row: Any) -> list[ColumnElement[int]]:
    return [literal(value, BigInteger) for value in row]


def _number(xid: Any) -> ColumnElement[int]:
    return cast(cast(xid, Text), BigInteger)


# Built once: building them takes longer than running them.
_OLDEST_RUNNING = _number(func.pg_snapshot_xmin(func.pg_current_snapshot()))
_INSERT = {
    sqlite: insert(changes).values(tx=tx, kind="message", id=bindparam("id"))
    for sqlite, tx in ((True, 0), (False, _number(func.pg_current_xact_id())))
}
_GIVEN = (bindparam("tx", type_=BigInteger), bindparam("seq", type_=BigInteger))
_ORDER = (changes.c.tx, changes.c.seq)
_NEWEST = select(*_ORDER).order_by(changes.c.tx.desc(), changes.c.seq.desc())
_PLACE = select(index_positions).where(index_positions.c.name == bindparam("name"))


def is_after(place: Sequence[Any] = _GIVEN, *, sqlite: bool) -> ColumnElement[bool]:
    """True for changes after a place in the log: two columns or values, or the parameters `tx` and `seq`. On
    SQLite all have one `tx`, and no index serves a comparison of pairs whose second part is the rowid."""
    if sqlite:
        return and_(changes.c.tx == place[0], changes.c.seq > place[1])
    return tuple_(*_ORDER) > tuple_(*place)


def _after(passed: ColumnElement[bool], place: Sequence[Any], *, sqlite: bool) -> Select[Any]:
    """The changes after a place in the log."""
    begins = tuple_(index_positions.c.tx, index_positions.c.seq) > tuple_(*place)
    cut = exists().where(index_positions.c.name == CUT, begins).label("cut")
    found = select(changes, passed.label("passed"), cut).where(is_after(place, sqlite=sqlite))
    return found.order_by(*_ORDER).limit(bindparam("most"))


def _after_noted(passed: ColumnElement[bool], *, sqlite: bool) -> Select[Any]:
    """The place noted under a name, in each row, and the changes after it; one row if there are none."""
    noted = index_positions.alias("noted")
    place = [
        select(noted.c[name]).where(noted.c.name == bindparam("name")).scalar_subquery()
        for name in ("tx", "seq")
    ]
    found = _after(passed, place, sqlite=sqlite).subquery()
    rows = select(index_positions.c.tx.label("from_tx"), index_positions.c.seq.label("from_seq"), found)
    rows = rows.select_from(index_positions.outerjoin(found, true()))
    return rows.where(index_positions.c.name == bindparam("name")).order_by(found.c.tx, found.c.seq)


_AFTER = {
    (sqlite, noted): _after_noted(passed, sqlite=sqlite) if noted else _after(passed, _GIVEN, sqlite=sqlite)
    for sqlite, passed in ((True, true()), (False, changes.c.tx < _OLDEST_RUNNING))
    for noted in (True, False)
}
