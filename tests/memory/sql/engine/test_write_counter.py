"""A database that is older than the one that was there before is noticed, and nothing else is."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from memory.sql.engine import Database
from memory.sql.engine import database as engine
from memory.sql.engine.write_counter import store_counter
from memory.sql.tables import users


async def write(database: Database, id: str) -> None:
    async with database.write() as connection:
        await connection.execute(sa.insert(users).values(id=id, created_at=datetime.now(UTC)))


async def told(home: Path, writes: int = 0) -> bool:
    """Whether the home's database counts as older, when it is opened to write this often."""
    database = await Database.open(None, home)
    for number in range(writes):
        await write(database, f"{datetime.now(UTC)} {number}")
        await database.count_writes()
    await database.close()
    return database.older is not None


@pytest.fixture
async def running(tmp_path: Path) -> Database:
    """A database with a counted write in its file and another in its log."""
    await told(tmp_path / "home", writes=1)
    database = await Database.open(None, tmp_path / "home")
    await write(database, "anna")
    await database.count_writes()
    return database


def copied(tmp_path: Path, *endings: str) -> Path:
    (tmp_path / "copy").mkdir()
    for ending in endings:
        shutil.copy(tmp_path / "home" / f"hachi.db{ending}", tmp_path / "copy")
    return tmp_path / "copy"


async def test_a_copy_without_its_log_is_noticed_until_told(running: Database, tmp_path: Path) -> None:
    copy = copied(tmp_path, "", "-seen")
    await running.close()
    assert await told(copy, writes=3)
    assert await told(copy), "more writes do not make up for those that are missing"
    (copy / "hachi.db-seen").unlink()
    assert not await told(copy, writes=1)
    assert not await told(copy)


async def test_a_copy_without_its_log_from_before_the_first_checkpoint_is_noticed(tmp_path: Path) -> None:
    database = await Database.open(None, tmp_path / "home")
    await write(database, "anna")
    await database.count_writes()
    copy = copied(tmp_path, "", "-seen")
    await database.close()
    assert await told(copy)


async def test_an_older_copy_in_the_place_of_a_newer_is_noticed(running: Database, tmp_path: Path) -> None:
    copy = copied(tmp_path, "")
    await running.close()
    shutil.copy(copy / "hachi.db", tmp_path / "home")
    assert await told(tmp_path / "home")


async def test_a_copy_with_its_log_or_of_a_closed_one_is_whole(running: Database, tmp_path: Path) -> None:
    assert not await told(copied(tmp_path, "", "-seen", "-wal"))
    await running.close()
    shutil.copytree(tmp_path / "home", tmp_path / "closed")
    assert not await told(tmp_path / "closed")


async def test_a_crash_is_no_alarm(
    running: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "store_counter", lambda *_: None)
    await write(running, "bo")
    await running.count_writes()
    await running.close()
    assert not await told(tmp_path / "home")


async def test_a_database_that_was_begun_anew_is_no_older_one(running: Database, tmp_path: Path) -> None:
    await running.close()
    (tmp_path / "home" / "hachi.db").unlink()
    assert not await told(tmp_path / "home")


async def test_a_counter_that_another_process_raises_meanwhile_is_no_alarm(
    running: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raised_before(where: str) -> int:
        with closing(sqlite3.connect(where)) as other:
            [counter] = other.execute("PRAGMA user_version").fetchone()
            other.execute(f"PRAGMA user_version={counter + 1}")
        store_counter(where, counter + 1)
        return counter + 1

    monkeypatch.setattr(engine, "read_counter", raised_before)
    assert not await told(tmp_path / "home", writes=2)
    await running.close()


async def test_only_writes_are_counted(running: Database, tmp_path: Path) -> None:
    seen = tmp_path / "home" / "hachi.db-seen"
    before = seen.read_bytes()
    await running.count_writes()
    assert seen.read_bytes() == before
    assert seen.stat().st_mode & 0o077 == 0
    assert [path.name for path in seen.parent.glob("*-seen*")] == [seen.name]
    await running.close()
