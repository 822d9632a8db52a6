"""Opening, migrating and losing the database."""

import asyncio
import gzip
import re
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgresql_server import Server
from waiting import turns_of_others

from memory.errors import StoreUnavailable
from memory.sql.engine import Database, connecting, migrate
from memory.sql.engine import database as module
from memory.sql.engine.errors import Overtaken
from memory.sql.engine.migrate import FIRST, HEAD, MIGRATIONS
from memory.sql.tables import figures, metadata, speakers, users

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def add_user(database: Database, id: str, at: datetime = NOW) -> None:
    async with database.write() as connection:
        await connection.execute(sa.insert(users).values(id=id, created_at=at))


async def names(database: Database) -> list[str]:
    return [row.id for row in await database.rows(sa.select(users.c.id).order_by(users.c.id))]


ENDED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test%'"


@pytest.fixture
async def on_server(postgresql: Server, tmp_path: Path) -> AsyncIterator[Database]:
    """A database of one's own on the server."""
    database = await Database.open(await postgresql.new(), tmp_path)
    yield database
    await database.close()


async def fault(url: str | None, home: Path) -> str:
    """What a person is told when this database cannot be opened: one line."""
    with pytest.raises(StoreUnavailable) as told:
        await (await Database.open(url, home)).close()
    assert "\n" not in str(told.value)
    return str(told.value)


async def test_opening_makes_the_folder_whatever_its_name_and_the_tables(tmp_path: Path) -> None:
    home = tmp_path / "new" / "50% of #1? über?mode=ro"
    database = await Database.open(None, home)
    await add_user(database, "anna")
    assert (home / "hachi.db").exists()
    assert home.stat().st_mode & 0o077 == 0
    await database.close()
    again = await Database.open(None, home)
    assert (await again.revision(), await again.migrate()) == (HEAD, False)
    assert await names(again) == ["anna"]
    await again.close()


def schema(home: Path) -> set[tuple[str, str]]:
    with sqlite3.connect(home / "hachi.db") as file:
        rows = file.execute("SELECT name, coalesce(sql, '') FROM sqlite_master").fetchall()
    file.close()
    return {(name, " ".join(sql.replace("(", " ( ").replace(")", " ) ").split())) for name, sql in rows}


OLDER = Path(__file__).parents[3] / "data" / "tables_0023" / "hachi.db.gz"


def older(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "hachi.db").write_bytes(gzip.decompress(OLDER.read_bytes()))


async def test_a_new_database_has_the_tables_that_a_conversion_leaves(tmp_path: Path) -> None:
    await (await Database.open(None, tmp_path / "new")).close()
    older(tmp_path / "old")
    old = await Database.open(None, tmp_path / "old")
    assert await old.revision() == HEAD
    await old.close()
    assert schema(tmp_path / "old") == schema(tmp_path / "new")


async def test_a_failed_conversion_leaves_the_tables_and_a_copy_stays_until_something_is_purged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, migrations)
    newest = migrations / "versions" / "9999_newest.py"
    monkeypatch.setattr(migrate, "MIGRATIONS", migrations)
    monkeypatch.setattr(migrate, "HEAD", "9999")
    home, names = tmp_path / "home", f"revision, down_revision = '9999', '{HEAD}'\n"
    older(home)
    before = schema(home)
    step = "def upgrade():\n    from alembic import op\n    op.execute('CREATE TABLE more (id TEXT)')\n"
    newest.write_text(f"{names}{step}    raise OSError('killed')\n")
    with pytest.raises(StoreUnavailable, match="killed"):
        await Database.open(None, home)
    assert schema(home) == before

    newest.write_text(f"{names}{step}")
    database = await Database.open(None, home)
    copy = home / "hachi.db.before-conversion"
    with sqlite3.connect(copy) as file:
        assert file.execute("SELECT version_num FROM alembic_version").fetchall() == [(FIRST,)]
    file.close()
    assert "more" in {name for name, _ in schema(home) - before}
    database.drop_copies()
    assert not copy.exists()
    await database.close()


async def test_a_home_older_than_what_is_converted_or_newer_than_this_version_is_refused(
    tmp_path: Path,
) -> None:
    older(tmp_path)
    for version, told in (
        ("0022", "hachi.db is older (0022) than what this Hachi converts (0023)"),
        ("9999", "a newer Hachi (9999); update this one"),
    ):
        with sqlite3.connect(tmp_path / "hachi.db") as file:
            file.execute(f"UPDATE alembic_version SET version_num = '{version}'")
        file.close()
        assert told in await fault(None, tmp_path)


async def test_the_migrated_tables_are_those_the_code_describes(database: Database) -> None:
    def differences(connection: sa.Connection) -> object:
        options = {"compare_type": True, "compare_server_default": not database.sqlite}  # no identities there
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with database.read() as connection:
        assert await connection.run_sync(differences) == []
    assert await database.damage() == []


async def test_a_database_without_a_table_index_or_trigger_of_this_version_is_refused(
    tmp_path: Path, postgresql: Server
) -> None:
    for url in (None, await postgresql.new()):
        database = await Database.open(url, tmp_path)
        changes = [
            "DROP TABLE figures",
            "DROP INDEX ix_work_due_at",
            "DROP TRIGGER message_made" + ("" if database.sqlite else " ON messages"),
            *(["DROP TRIGGER chunk_gone"] if database.sqlite else []),
            "CREATE TRIGGER chunk_gone AFTER DELETE ON knowledge_chunks BEGIN SELECT 1; END"
            if database.sqlite
            else "CREATE OR REPLACE FUNCTION chunk_gone() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN NULL; END $$",
        ]
        async with database.write() as connection:
            for change in changes:
                await connection.exec_driver_sql(change)
        await database.close()
        line = await fault(url, tmp_path)
        assert "lacks the index ix_work_due_at, the table figures, the trigger chunk_gone" in line
        assert "the trigger message_made as this version makes them" in line
        assert line.endswith("restore a backup, or begin with another home")


async def test_another_programs_database_is_refused_and_left_as_it_is(
    tmp_path: Path, postgresql: Server
) -> None:
    made = [f"CREATE TABLE {name} (id text)" for name in ("messages", "users", "memories")]
    made += [
        "CREATE TABLE alembic_version (version_num text)",
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",
    ]
    for statements in (made[:1], made):
        file, url = tmp_path / f"{len(statements)}.db", await postgresql.new(migrated=False)
        with closing(sqlite3.connect(file)) as shop, shop:
            for statement in statements:
                shop.execute(statement)
        before = file.read_bytes()
        foreign = Database.connect(url, tmp_path)
        async with foreign.write() as connection:
            for statement in statements:
                await connection.exec_driver_sql(statement)
        for where in (f"sqlite:///{file}", url):
            assert "none of Hachi's: name an empty database" in await fault(where, tmp_path)
        with pytest.raises(StoreUnavailable, match="holds another program's tables"):
            await foreign.migrate()
        await foreign.close()
        assert file.read_bytes() == before
        assert file.with_name(f"{file.name}-wal") not in tmp_path.iterdir()  # noqa: ASYNC240 - of a test


async def test_postgresql_without_tables_names_the_command_for_them(
    postgresql: Server, tmp_path: Path
) -> None:
    url = await postgresql.new(migrated=False)
    assert (await fault(url, tmp_path)).endswith("are missing or old: run `hachi migrate`")
    two = [Database.connect(url, tmp_path) for _ in range(2)]
    assert sorted(await asyncio.gather(*(one.migrate() for one in two))) == [False, True]
    for one in two:
        await one.close()
    await (await Database.open(url, tmp_path)).close()


async def test_a_mute_server_is_left(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "ANSWER_SECONDS", 0.05)
    database = Database.connect(await postgresql.shared(), tmp_path)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        async with database.write() as connection:
            await connection.execute(sa.text("SELECT pg_sleep(20)"))
    async with database.read() as connection:
        assert (await connection.execute(sa.text("SELECT 1"))).scalar() == 1
    await database.close()


async def test_what_another_write_took_first_is_told_as_overtaken(database: Database) -> None:
    await add_user(database, "anna")
    with pytest.raises(Overtaken, match="another writer changed the same"):
        await add_user(database, "anna")
    assert await names(database) == ["anna"]


async def test_a_deadlock_is_told_as_overtaken(on_server: Database) -> None:
    for name in ("anna", "ben"):
        await add_user(on_server, name)
    both_hold_one = asyncio.Barrier(2)

    async def change(first: str, second: str) -> None:
        async with on_server.write() as connection:
            await connection.execute(sa.text("SET LOCAL deadlock_timeout = '10ms'"))
            for id in (first, second):
                changed = sa.update(users).where(users.c.id == id)
                await connection.execute(changed.values(created_at=NOW + timedelta(days=1)))
                if id == first:
                    await both_hold_one.wait()

    results = await asyncio.gather(change("anna", "ben"), change("ben", "anna"), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NoneType", "Overtaken"]


async def test_times_come_back_aware_and_one_without_a_zone_is_refused(database: Database) -> None:
    paris = timezone(timedelta(hours=1))
    await add_user(database, "anna", datetime(2026, 1, 10, 0, 30, 0, 123456, tzinfo=paris))
    [kept] = [row[0] for row in await database.rows(sa.select(users.c.created_at))]
    assert kept == datetime(2026, 1, 9, 23, 30, 0, 123456, tzinfo=UTC)
    assert kept.tzinfo is UTC
    with pytest.raises(ValueError, match="a time without a zone"):
        await add_user(database, "ben", datetime(2026, 1, 10))  # noqa: DTZ001
    assert await names(database) == ["anna"]


async def test_decisions_on_the_same_thing_wait_for_each_other(database: Database, open_again: Any) -> None:
    one, other = database, await open_again()
    order = []

    async def decide(database: Database, name: str) -> None:
        async with database.write(lock=["a fact", name]):
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")

    await asyncio.gather(decide(one, "one"), decide(other, "other"), decide(one, "third"))
    assert [step.split()[1] for step in order] == ["begins", "ends"] * 3


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("not a url", "DATABASE_URL is no URL; expected postgresql://user@host/name"),
        ("mysql://anna:geheim@host/x", "names mysql; Hachi's database is postgresql:// or sqlite://"),
        ("sqlite://", "names no file; expected sqlite:///path/to/hachi.db"),
        ("postgresql:///x?connect_timeout=soon", "connect_timeout in DATABASE_URL is no number"),
        ("postgresql://anna:geheim@127.0.0.1:1/x", "postgresql://anna@127.0.0.1:1/x cannot be reached"),
        ("postgresql+psycopg://anna:geheim@/x?host=/nowhere", "cannot be reached (No such file"),
        ("postgresql://anna:geheim@/x?sslmode=perhaps", "`sslmode` parameter must be one of"),
    ],
)
async def test_a_url_that_leads_nowhere_is_told_but_no_password(url: str, told: str, tmp_path: Path) -> None:
    line = await fault(url, tmp_path)
    assert told in line
    assert "geheim" not in line


async def test_a_refused_password_is_told_without_showing_it(postgresql: Server, tmp_path: Path) -> None:
    (postgresql.folder / "pg_hba.conf").write_text("local all careful scram-sha-256\nlocal all all trust\n")
    await postgresql.run("CREATE ROLE careful SUPERUSER LOGIN PASSWORD 'geheim'", "SELECT pg_reload_conf()")
    await asyncio.sleep(0.1)  # the server reads it a moment later
    url = (await postgresql.new()).replace("//postgres:", "//careful:geheim")
    line = await fault(url.replace("geheim", "falsch"), tmp_path)
    assert line.endswith("the server refused the password in DATABASE_URL")
    assert "falsch" not in line
    database = await Database.open(url, tmp_path)
    assert "geheim" not in database.where
    await database.close()


async def test_without_its_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert await fault("postgresql:///x", tmp_path) == (
        "PostgreSQL needs its driver: run pip install -e '.[postgres]' in the clone of Hachi, or pip install "
        "'FILE.whl[postgres]'"
    )


async def test_a_server_that_goes_away_is_told_and_found_again(
    on_server: Database, postgresql: Server
) -> None:
    await add_user(on_server, "anna")

    async def read_while_it_goes_away() -> None:
        async with on_server.read() as connection:
            await postgresql.run(ENDED)
            await connection.execute(sa.text("SELECT 1"))

    with pytest.raises(StoreUnavailable):
        await read_while_it_goes_away()
    assert await names(on_server) == ["anna"]
    async with on_server.read() as connection:
        idle: Any = (await connection.get_raw_connection()).driver_connection
        closed = asyncio.Event()
        idle.add_termination_listener(lambda _: closed.set())
    await postgresql.run(ENDED)
    await closed.wait()
    assert await names(on_server) == ["anna"]


async def test_only_a_write_puts_its_statements_into_one_transaction(on_server: Database) -> None:
    began = sa.text("SELECT now()")  # of the transaction
    async with on_server.read() as connection:
        assert await connection.scalar(began) < await connection.scalar(began)
    async with on_server.write() as connection:
        assert await connection.scalar(began) == await connection.scalar(began)


async def test_more_at_once_than_there_are_connections_is_told(on_server: Database) -> None:
    on_server.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    held = asyncio.Event()

    async def hold() -> None:
        async with on_server.read():
            await held.wait()

    waiting = [asyncio.create_task(hold()) for _ in range(15)]
    await asyncio.sleep(0.1)
    with pytest.raises(StoreUnavailable, match="too much is asked at once"):
        await names(on_server)
    held.set()
    await asyncio.gather(*waiting)
    assert await names(on_server) == []


async def test_whoever_finds_the_server_full_waits_for_a_connection_of_this_process(
    postgresql: Server, tmp_path: Path, several_connections: None
) -> None:
    await postgresql.run("CREATE ROLE few LOGIN CONNECTION LIMIT 3", "CREATE DATABASE test_few OWNER few")
    url = postgresql.url("test_few").replace("//postgres:", "//few:")
    database = Database.connect(url, tmp_path)
    await database.migrate()

    async def turn(number: int) -> None:
        for step in range(3):
            await add_user(database, f"{number}-{step}")
            assert f"{number}-{step}" in await names(database)

    await asyncio.gather(*(turn(number) for number in range(60)))
    assert len(await names(database)) == 180
    other = Database.connect(url, tmp_path)
    other.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    with pytest.raises(
        StoreUnavailable, match="the server has no connection left; raise its max_connections"
    ):
        await names(other)
    await database.close()
    assert len(await names(other)) == 180, "a place has become free"
    await other.close()


async def test_the_url_says_how_many_connections_a_process_takes(postgresql: Server, tmp_path: Path) -> None:
    database = await Database.open(f"{await postgresql.shared()}&pool_size=2", tmp_path)
    assert database.engine.pool.size() == 2  # type: ignore[attr-defined]
    await database.close()


async def test_statements_see_what_is_committed_whatever_the_server_defaults_to(
    postgresql: Server, tmp_path: Path
) -> None:
    url = await postgresql.new()
    await postgresql.run(
        f"ALTER DATABASE {sa.make_url(url).database} SET default_transaction_isolation = serializable"
    )
    database = await Database.open(url, tmp_path)
    level = sa.text("SELECT current_setting('transaction_isolation')")
    async with database.read() as reading, reading.begin():
        assert await reading.scalar(level) == "read committed"
    async with database.write() as connection:
        assert await connection.scalar(level) == "read committed"
    await database.close()


async def test_a_folder_or_file_that_is_no_use_is_told_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = await fault(None, tmp_path / "file" / "home")
    assert line.startswith(f"the folder {tmp_path / 'file' / 'home'} cannot be made (")
    assert line.endswith("set HACHI_HOME to one that can")
    (tmp_path / "hachi.db").mkdir()
    assert "cannot be opened; check the folder's permissions or set HACHI_HOME" in await fault(None, tmp_path)
    (tmp_path / "hachi.db").rmdir()
    (tmp_path / "hachi.db").write_text("Dear diary, " * 1000)
    assert "this is no database, or a damaged one" in await fault(None, tmp_path)
    assert (tmp_path / "hachi.db").read_text().startswith("Dear diary, ")


async def test_a_read_only_file_and_a_full_disk_are_told_and_nothing_is_lost(tmp_path: Path) -> None:
    database = await Database.open(None, tmp_path)
    await add_user(database, "anna")
    async with database.read() as connection:
        await connection.execute(sa.text("PRAGMA query_only = ON"))  # as for a person who may not write
    with pytest.raises(StoreUnavailable, match="read-only; give write access or set HACHI_HOME"):
        await add_user(database, "ben")
    async with database.read() as connection:
        await connection.execute(sa.text("PRAGMA query_only = OFF"))
        pages = (await connection.execute(sa.text("PRAGMA page_count"))).scalar_one()
        await connection.execute(sa.text(f"PRAGMA max_page_count = {pages}"))
    full = "the disk is full; make room, nothing that was accepted is lost"
    with pytest.raises(StoreUnavailable, match=full):
        await add_user(database, "b" * 100_000)
    assert await names(database) == ["anna"]
    await database.close()


async def test_a_write_waits_and_a_busy_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = await Database.open(None, tmp_path)
    other = sqlite3.connect(tmp_path / "hachi.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(add_user(database, "anna"))
    await asyncio.sleep(0.1)
    assert not write.done()
    assert await names(database) == []  # reading waits for nobody
    other.execute("ROLLBACK")
    await write
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="another process has kept the database busy"):
        await add_user(database, "ben")
    other.close()
    await add_user(database, "ben")
    assert await names(database) == ["anna", "ben"]
    await database.close()


async def test_a_value_that_is_no_json_is_not_told_as_a_damaged_database(tmp_path: Path) -> None:
    database = await Database.open(None, tmp_path)
    with pytest.raises(StoreUnavailable, match=r"malformed JSON$"):
        await database.rows(sa.text("SELECT json_extract('{', '$.a')"))
    await database.close()


async def test_deleted_rows_give_their_room_back_in_steps_that_let_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(None, tmp_path)
    async with database.write() as connection:
        rows = [{"id": f"{number} {'x' * 2000}", "created_at": NOW} for number in range(500)]
        await connection.execute(sa.insert(users), rows)
    async with database.write() as connection:
        await connection.execute(sa.delete(users))
    await database.empty_log()
    before = (tmp_path / "hachi.db").stat().st_size
    assert await turns_of_others(database.give_back(), monkeypatch) > 5
    assert (tmp_path / "hachi.db").stat().st_size < before / 3
    await add_user(database, "anna")
    assert await names(database) == ["anna"]
    await database.close()


async def test_a_database_is_not_its_copies(database: Database, open_again: Any, tmp_path: Path) -> None:
    names = [await each.identity() for each in (database, await open_again())]
    assert names[0] == names[1]
    assert re.fullmatch("[0-9a-f]{12}", names[0])
    if database.sqlite:
        copy = tmp_path / "copy" / "hachi.db"
        copy.parent.mkdir()
        async with database.read() as connection:
            await connection.exec_driver_sql(f"VACUUM INTO '{copy}'")
        other = await Database.open(None, copy.parent)
        assert await other.identity() != names[0]
        await other.close()


@pytest.mark.parametrize(("table", "name"), [(speakers, "owner"), (figures, "value")])
@pytest.mark.parametrize("late", [False, True])
async def test_a_list_may_be_of_any_length(
    database: Database, table: sa.Table, name: str, late: bool
) -> None:
    column, text = table.c[name], table is speakers
    wanted: list[Any] = [f"ü{n}'\"%" if text else n for n in range(70_000)]
    rows = [
        {"owner": one, "author": "Ana"} if text else {"user_id": str(one), "name": "", "value": one}
        for one in wanted
    ]
    async with database.write() as connection:
        if database.sqlite:  # fewer parameters than any build allows
            raw = (await connection.get_raw_connection()).driver_connection
            assert raw is not None
            raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        await connection.execute(sa.insert(table), rows[:3])
        for values in (wanted[1:], wanted[1:2]):  # of one statement, packed and not
            listed: Any = sa.bindparam("values", expanding=True) if late else values
            given = {"values": values} if late else {}
            inside = len(values[:2])
            for condition, found in ((column.in_(listed), inside), (column.not_in(listed), 3 - inside)):
                assert await connection.scalar(sa.select(sa.func.count()).where(condition), given) == found
