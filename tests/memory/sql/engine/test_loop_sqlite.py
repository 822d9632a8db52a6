"""SQLite on the event loop: however much one task asks for, others run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from waiting import turns_of_others

from memory.sql.engine import Database
from memory.sql.tables import users

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ROWS = [{"id": f"anna{number}", "created_at": NOW} for number in range(40_000)]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(None, tmp_path)
    yield opened
    await opened.close()


async def insert(database: Database, rows: list[dict[str, object]] = ROWS) -> None:
    async with database.write() as connection:
        await connection.execute(sa.insert(users), rows)


async def ask_often(database: Database) -> None:
    async with database.read() as connection:
        for row in ROWS[:3_000]:
            await connection.execute(sa.select(users.c.id).where(users.c.id == row["id"]))


async def read_all(database: Database) -> None:
    assert len(await database.rows(sa.select(users))) == len(ROWS)


@pytest.mark.parametrize(("act", "turns"), [(ask_often, 10), (read_all, 2)])
async def test_many_statements_and_many_rows_let_others_run(
    database: Database,
    act: Callable[[Database], Awaitable[None]],
    turns: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await insert(database)
    assert await turns_of_others(act(database), monkeypatch) > turns


async def test_a_write_that_is_cancelled_while_others_run_changes_nothing(database: Database) -> None:
    writing = asyncio.create_task(insert(database))
    await asyncio.sleep(0.001)
    assert not writing.done()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await database.rows(sa.select(users)) == []
    await insert(database, ROWS[:1])
    assert len(await database.rows(sa.select(users))) == 1
