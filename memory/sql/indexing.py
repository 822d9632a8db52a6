"""Tracks which rows the index does not show yet: the same way for memories, messages and summaries.

Each of these tables has `indexed_under`: the generation of the index that shows the current row, or NULL. A
deleted or rebuilt index has a new generation, so all rows are due for it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, ScalarSelect, Table, case, func, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.engine import Database
from memory.sql.jobs import UNINDEX
from memory.sql.tables import active_conversations, memories, messages, work

SAMPLE = 16

INDEXED = (memories, messages, active_conversations)


def is_due(table: Table, generation: Any) -> ColumnElement[bool]:
    """True for rows that are due. Uses ranges, since ``!=`` would read every row."""
    under = table.c.indexed_under
    return or_(under.is_(None), under < generation, under > generation)


async def due_tables(database: Database, generation: str) -> set[str]:
    """The names of the tables with rows that are due, in one statement."""
    found = [
        select(table.c.id).where(is_due(table, generation)).exists().label(table.name) for table in INDEXED
    ]
    [row] = await database.rows(select(*found))
    return {name for name, due in row._mapping.items() if due}


async def count_due(database: Database, generation: str, *tables: Table) -> int:
    """The number of rows that are due in these tables, by default in all of them."""
    counts = [
        select(func.count()).select_from(table).where(is_due(table, generation)).scalar_subquery()
        for table in tables or INDEXED
    ]
    [row] = await database.rows(select(*counts))
    return sum(row)


Shown = tuple[Table, ColumnElement[bool], ColumnElement[bool]]
"""A table, which of its rows an index shows, and which of those it may have removed by now."""


async def bounds(
    database: Database,
    generation: str,
    rows: Sequence[Shown],
) -> tuple[int, int]:
    """How many points an index of this generation has at least and at most.

    A row that is due may be there or not, and so may one that waits to be removed.
    """
    generations = {table: table.c.indexed_under == generation for table, _, _ in rows}
    least = [_count(table, generations[table], shown, ~leaving) for table, shown, leaving in rows]
    most = [_count(table, or_(shown, is_due(table, generation))) for table, shown, _ in rows]
    removing = select(work.c.payload).where(work.c.kind == UNINDEX)
    async with database.read() as connection:
        least_and_most = list((await connection.execute(select(*least, *most))).one())
        waiting = sum(len(payload["ids"]) for payload in (await connection.execute(removing)).scalars())
    return sum(least_and_most[: len(rows)]), sum(least_and_most[len(rows) :]) + waiting


def _count(table: Table, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    return select(func.count()).select_from(table).where(*conditions).scalar_subquery()


async def sample(
    database: Database, table: Table, newest: ColumnElement[Any], shown: ColumnElement[bool], generation: str
) -> set[str]:
    """Ids of rows that an index of this generation shows: the newest `SAMPLE` ones, and as many by chance."""
    under = select(table.c.id).where(table.c.indexed_under == generation, shown)
    by_chance = under.where(table.c.id >= str(uuid4())).order_by(table.c.id).limit(SAMPLE)
    async with database.read() as connection:
        last = await connection.scalars(under.order_by(newest.desc()).limit(SAMPLE))
        return {*last, *await connection.scalars(by_chance)}


async def mark_indexed(
    connection: AsyncConnection, table: Table, revisions: Mapping[str, int], generation: str
) -> set[str]:
    """Mark these rows as indexed at these revisions, by id. Returns the ids whose row no longer exists.

    A row that has changed since is due again, even if another process has indexed its newer state, because
    our older state may have reached the index after it. A row that is locked for a change stays due.
    """
    free = select(table.c.id).where(table.c.id.in_(revisions)).with_for_update(skip_locked=True)
    unchanged = tuple_(table.c.id, table.c.revision).in_(list(revisions.items()))
    marked = update(table).where(table.c.id.in_(free)).values(indexed_under=case((unchanged, generation)))
    seen = set((await connection.execute(marked.returning(table.c.id))).scalars())
    return await missing(connection, table, revisions.keys() - seen)


async def missing(connection: AsyncConnection, table: Table, ids: Collection[str]) -> set[str]:
    """The ids that have no row. Runs no query if `ids` is empty."""
    if not ids:
        return set()
    rows = await connection.execute(select(table.c.id).where(table.c.id.in_(ids)))
    return set(ids) - set(rows.scalars())
