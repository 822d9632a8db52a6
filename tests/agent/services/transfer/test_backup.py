"""A backup is whole, whatever else writes; a restore notices what is not."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.errors import BadInput
from agent.services.transfer.backup import back_up, require_unused, restore
from memory.errors import StoreUnavailable
from tests.agent.conftest import OpenPet


def backed_up(home: Path, target: Path) -> Path:
    back_up(home, home / "hachi.db", target)
    return target


def brought_back(source: Path, home: Path, replace: bool = False) -> None:
    restore(home, home / "hachi.db", source, replace=replace)


def count(database: Path, table: str) -> int:
    with closing(sqlite3.connect(database)) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return found


async def test_what_was_backed_up_is_back_and_found(open_pet: OpenPet, home: Path, tmp_path: Path) -> None:
    pet = await open_pet()
    await pet.remember("Ana skis", user="ana")
    assert (home / "hachi.db-wal").stat().st_size > 0, "it is in the log, not yet in the file"
    (home / "decisions.jsonl").write_text("{}\n")

    backed_up(home, tmp_path / "copy")
    await pet.remember("Ana swims", user="ana")
    brought_back(tmp_path / "copy", tmp_path / "other")

    other = await open_pet(home=tmp_path / "other")
    assert [hit.content for hit in await other.search_memories("does Ana ski?", user="ana")] == ["Ana skis"]
    assert [memory.content for memory in await other.memories.list(user="ana")] == ["Ana skis"]
    copies = sorted((tmp_path / "copy").iterdir())
    assert [path.name for path in copies] == ["decisions.jsonl", "hachi.db"]
    for path in (tmp_path / "copy", *copies, *(tmp_path / "other").glob("*.db")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


WRITER = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], isolation_level=None) as database:
    for number in range(1_000_000):
        database.execute("BEGIN IMMEDIATE")
        for table in ("users (id, created_at)", "deliveries (id, seen_at, source)"):
            extra = ", 'x'" if "source" in table else ""
            database.execute(f"INSERT INTO {table} VALUES ('u{number}', '2026-01-01'{extra})")
        database.execute("COMMIT")
        if number == 100:
            print("writing", flush=True)
"""


@pytest.fixture
def writer(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes two rows in each transaction, without end."""
    command = [sys.executable, "-c", WRITER, str(home / "hachi.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_backup_is_of_one_moment_while_another_process_writes(
    writer: subprocess.Popen[bytes], home: Path, tmp_path: Path
) -> None:
    before = count(home / "hachi.db", "users")
    for number in range(5):
        copy = backed_up(home, tmp_path / f"copy{number}") / "hachi.db"
        assert count(copy, "users") == count(copy, "deliveries") >= before
    assert writer.poll() is None, "it was not disturbed"
    with pytest.raises(StoreUnavailable, match="in use by another hachi process; stop it first"):
        brought_back(tmp_path / "copy0", home, replace=True)


def test_what_is_there_is_replaced_only_on_demand_with_its_log(home: Path, tmp_path: Path) -> None:
    copy = backed_up(home, tmp_path / "copy")
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute("INSERT INTO users (id, created_at) VALUES ('ana', '2026-01-01')")

    with pytest.raises(BadInput, match=r"hachi.db is there already; --yes replaces it"):
        brought_back(copy, home)
    assert count(home / "hachi.db", "users") == 1
    brought_back(copy, home, replace=True)

    assert count(home / "hachi.db", "users") == 0


def test_another_programs_database_is_not_replaced(home: Path, tmp_path: Path) -> None:
    copy = backed_up(home, tmp_path / "copy")
    (home / "hachi.db").unlink()
    with closing(sqlite3.connect(home / "hachi.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id)")
    before = (home / "hachi.db").read_bytes()
    with pytest.raises(BadInput, match="holds another program's tables; nothing was restored"):
        brought_back(copy, home, replace=True)
    assert (home / "hachi.db").read_bytes() == before


def test_a_damaged_database_is_replaced(home: Path, tmp_path: Path) -> None:
    copy = backed_up(home, tmp_path / "copy")
    (home / "hachi.db").write_bytes(b"no database" * 1000)
    brought_back(copy, home, replace=True)
    assert count(home / "hachi.db", "users") == 0


def rewrite(statement: str) -> Callable[[Path], None]:
    """Change the database of a backup."""

    def spoil(copy: Path) -> None:
        with closing(sqlite3.connect(copy / "hachi.db")) as database, database:
            database.execute(statement)

    return spoil


def spoil_page(copy: Path) -> None:
    file = copy / "hachi.db"
    file.write_bytes(file.read_bytes()[:-4096] + b"?" * 4096)


def spoil_by_link(copy: Path) -> None:
    (copy / "hachi.db").rename(copy / "elsewhere.db")
    (copy / "hachi.db").symlink_to(copy / "elsewhere.db")


TRIGGER = "CREATE TRIGGER kept AFTER DELETE ON messages BEGIN SELECT 1; END"


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda copy: (copy / "hachi.db").unlink(), "holds no hachi.db, so it is no backup"),
        (spoil_page, "hachi.db is damaged"),
        (spoil_by_link, "hachi.db is no file; nothing was restored"),
        (rewrite("PRAGMA journal_mode=WAL"), "copied by hand and may lack what was written last"),
        (rewrite(TRIGGER), "hachi.db has a trigger 'kept', which is not of hachi; drop it first"),
        (rewrite("CREATE VIEW kept AS SELECT * FROM messages"), "has a view 'kept', which is not of hachi"),
        (rewrite("CREATE TABLE kept (text TEXT)"), "has a table 'kept', which is not of hachi"),
        (rewrite("UPDATE alembic_version SET version_num = '9999'"), "was written by a newer hachi"),
    ],
)
def test_what_is_no_sound_backup_is_refused(
    home: Path, tmp_path: Path, spoil: Callable[[Path], None], told: str
) -> None:
    copy = backed_up(home, tmp_path / "copy")
    spoil(copy)
    with pytest.raises((BadInput, StoreUnavailable), match=told):
        brought_back(copy, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_damaged_or_missing_database_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no database"):
        backed_up(tmp_path / "nowhere", tmp_path / "copy")
    (home / "hachi.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnavailable, match="cannot be copied"):
        backed_up(home, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").touch()
    with pytest.raises(BadInput, match="is there already; name a new folder"):
        backed_up(home, tmp_path / "copy")
    assert (tmp_path / "copy" / "mine").exists()


def test_a_database_that_keeps_its_journal_counts_as_in_use() -> None:
    with pytest.raises(StoreUnavailable, match="may be in use by another hachi process"):
        require_unused(Path(":memory:"))  # whose journal SQLite does not change, without an error
