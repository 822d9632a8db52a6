"""Moves everything from one database into another: all people and places, and every table.

Rows are copied in pages, ordered by key, each page in one transaction. An interrupted move continues after
the last copied row. Until all tables are verified, the target has a mark in place of its revision, so that no
process opens it. The bookkeeping of the source's indexes is not copied.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Row, String, Table, delete, func, insert, select, text, tuple_

from agent.errors import BadInput
from agent.services.transfer.backup import require_unused
from memory.errors import StoreUnavailable
from memory.index.worker import Progress
from memory.sql.engine import Database
from memory.sql.engine.migrate import HEAD, MOVING
from memory.sql.tables import changes, index_marks, index_todo, metadata
from memory.sql.tables.triggers import create_triggers, drop_triggers

ROWS_AT_ONCE = 1_000
TABLES = [table for table in metadata.sorted_tables if table not in (changes, index_todo, index_marks)]


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table that has the same rows on both sides."""

    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Move:
    database: Database
    target: Database

    async def rows(self) -> int:
        """Return how many rows there are to copy."""
        return sum([await _count(self.database, table) for table in TABLES])

    async def run(self, progress: Progress) -> list[MovedTable]:
        """Copy and compare every table. Raises BadInput if the target has other data, and StoreUnavailable if
        another process uses the source or changes it meanwhile."""
        if self.target.where == self.database.where:
            raise BadInput(f"everything is in {self.target.where} already")
        await _require_unused(self.database)
        await self._begin()
        for table in TABLES:
            await self._copy(table, progress)
        moved = [await self._compared(table, progress) for table in TABLES]
        async with self.target.write() as connection:
            if not self.target.sqlite:
                for column in [column for table in metadata.sorted_tables for column in table.c]:
                    if column.identity:
                        await connection.execute(text(_NEXT.format(column.table.name, column.name)))
            await connection.run_sync(create_triggers)
            await connection.execute(_REVISION, {"revision": HEAD})
        return moved

    async def _begin(self) -> None:
        """Create the tables, and mark the target as incomplete."""
        mark = f"{MOVING}-{hashlib.sha256(self.database.where.encode()).hexdigest()[:16]}"
        revision = await self.target.revision()
        if revision == mark:
            return
        if revision and revision.startswith(MOVING):
            raise BadInput(f"{self.target.where} holds part of another database; move to an empty one")
        await self.target.migrate()
        for table in metadata.sorted_tables:
            if await _count(self.target, table):
                raise BadInput(
                    f"{self.target.where} holds other data (in {table.name}); move to an empty one"
                )
        async with self.target.write() as connection:
            await connection.run_sync(drop_triggers)
            await connection.execute(_REVISION, {"revision": mark})

    async def _copy(self, table: Table, progress: Progress) -> None:
        last = await _last(self.target, table)
        if last is not None:
            progress(await _count(self.target, table))
        async for rows in _pages(self.database, table, last):
            values = [dict(row._mapping) for row in rows]
            async with self.target.write() as connection:
                await connection.execute(insert(table), values)
            progress(len(rows))

    async def _compared(self, table: Table, progress: Progress) -> MovedTable:
        """Compare the table on both sides. If it differs, the target is emptied."""
        count, digest = await _checksum(self.database, table)
        if (count, digest) != await _checksum(self.target, table):
            async with self.target.write() as connection:
                for one in reversed(metadata.sorted_tables):
                    await connection.execute(delete(one))
            raise StoreUnavailable(
                f"{table.name} differs in {self.target.where}, since something changed it meanwhile; "
                "stop what uses it, and run it again from the beginning"
            )
        progress(count)
        return MovedTable(table.name, count, digest)


_REVISION = text("UPDATE alembic_version SET version_num = :revision")
_NEXT = """
    SELECT setval(pg_get_serial_sequence('{0}', '{1}'), coalesce(max({1}), 1), max({1}) IS NOT NULL) FROM {0}
"""
_OTHERS = text("""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
""")


async def _require_unused(source: Database) -> None:
    """Raise StoreUnavailable if another process is connected to the database."""
    await source.close()  # our own connections; the next read opens new ones
    if source.sqlite:
        require_unused(Path(source.where))
        return
    [[others]] = await source.rows(_OTHERS)
    if others:
        raise StoreUnavailable(f"{source.where} is in use by {others} other connections; stop them first")


async def _count(database: Database, table: Table) -> int:
    [[count]] = await database.rows(select(func.count()).select_from(table))
    return int(count)


def _key(database: Database, table: Table) -> list[ColumnElement[Any]]:
    """Return the table's key columns, in an order that all databases share: texts by their bytes."""
    return [
        column.collate("C") if isinstance(column.type, String) and not database.sqlite else column
        for column in table.primary_key
    ]


async def _last(database: Database, table: Table) -> Sequence[Any] | None:
    """Return the key of the last row; None if there is none."""
    query = select(*table.primary_key).order_by(*(column.desc() for column in _key(database, table))).limit(1)
    return next(iter(await database.rows(query)), None)


async def _pages(
    database: Database, table: Table, after: Sequence[Any] | None = None
) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the rows ordered by key, beginning after the key `after`."""
    key = _key(database, table)
    query = select(table).order_by(*key).limit(ROWS_AT_ONCE)
    while True:
        behind = query if after is None else query.where(tuple_(*key) > tuple_(*after))
        if not (rows := await database.rows(behind)):
            return
        yield rows
        after = [rows[-1]._mapping[column.name] for column in table.primary_key]


async def _checksum(database: Database, table: Table) -> tuple[int, str]:
    """Return how many rows there are, and the SHA-256 of their values."""
    count, digest = 0, hashlib.sha256()
    async for rows in _pages(database, table):
        count += len(rows)
        for row in rows:
            values = json.dumps(list(row), default=_plain, sort_keys=True)
            digest.update(values.encode() + b"\n")
    return count, digest.hexdigest()


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else bytes(value).hex()
