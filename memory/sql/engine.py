"""The database: SQLite in WAL mode by default, PostgreSQL by URL; and its migrations.

Two ways in: `database.read()` and `database.write()`, each one transaction. On SQLite a write takes the
lock at once (BEGIN IMMEDIATE), so that what it reads still holds when it writes.
"""

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, text
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.errors import StoreUnavailable

HEAD = "0004"
"""The newest migration; `tests/memory/test_database.py` holds it to the files."""

_BUSY_SECONDS = 15.0
"""How long a write waits for another process's write on SQLite."""

_CONNECT_SECONDS = 10.0
"""How long a PostgreSQL server may take to answer, unless its URL says otherwise."""

_ONCE_DURABLE = "hachi_once_durable"

registry.register("sqlite.loop", "memory.sql.sqlite", "LoopSQLite")


class Overtaken(StoreUnavailable):
    """A transaction beside this one wrote the same thing first, or stood in its way. Nothing of this one was
    kept: whoever looks again finds what the other wrote."""


class Database:
    """Open with `Database.open`; every fault of the engine comes out as StoreUnavailable, in one line."""

    def __init__(self, engine: AsyncEngine, where: str) -> None:
        self._engine = engine
        self.where = where
        """What to call it in messages: a path, or the server without its password."""
        self.writes = 0
        """Transactions that this process has written here: none since means that nothing has changed."""
        self._turn = asyncio.Lock() if self.sqlite else nullcontext()

    @classmethod
    async def open(cls, url: str | None, home: Path, setting: str = "DATABASE_URL") -> "Database":
        """SQLite in `home` (made and migrated as needed) where `url` is None; else that PostgreSQL, which
        must have been migrated with `hachi migrate`. `setting` is what the URL was given as."""
        database = cls.connect(url, home, setting)
        try:
            if database.sqlite:
                await database.migrate()
            elif await database._behind():
                raise StoreUnavailable(
                    f"the tables in {database.where} are missing or old: run `hachi migrate`"
                )
        except BaseException:
            await database.close()
            raise
        return database

    @classmethod
    def connect(cls, url: str | None, home: Path, setting: str = "DATABASE_URL") -> "Database":
        """The engine alone: nothing is opened or migrated yet."""
        if url is None:
            return cls._sqlite(home / "hachi.db")
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):  # what they say shows the URL, which may hold a password
            raise StoreUnavailable(f"{setting} is no URL; expected postgresql://user@host/name") from None
        kind = parsed.drivername.split("+")[0]
        if kind in {"postgresql", "postgres"}:
            return cls._postgresql(parsed)
        if kind != "sqlite":
            raise StoreUnavailable(
                f"{setting} names {parsed.drivername}; Hachi keeps its record in postgresql:// or sqlite://"
            )
        if parsed.database in {None, "", ":memory:"}:
            raise StoreUnavailable(f"{setting} names no file; expected sqlite:///path/to/hachi.db")
        return cls._sqlite(Path(str(parsed.database)))

    @classmethod
    def _postgresql(cls, url: URL) -> "Database":
        """The driver reads the URL itself: it knows all that PostgreSQL's own form allows, such as
        ``?host=/folder/of/socket`` and ``?sslmode=require``."""
        try:
            asyncpg = importlib.import_module("asyncpg")
        except ImportError as error:
            raise StoreUnavailable("PostgreSQL needs its driver: pip install 'hachi[postgres]'") from error
        try:
            seconds = float(str(url.query.get("connect_timeout", _CONNECT_SECONDS)))
        except ValueError:
            raise StoreUnavailable("connect_timeout in DATABASE_URL is no number of seconds") from None
        url = url.set(drivername="postgresql").difference_update_query(["connect_timeout"])
        where = url._replace(password=None).difference_update_query(["password", "sslpassword"])

        async def connection() -> Any:
            try:
                return await asyncpg.connect(url.render_as_string(hide_password=False), timeout=seconds)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
                raise StoreUnavailable(_explain(error, str(where))) from error

        engine = create_async_engine("postgresql+asyncpg://", async_creator=connection, pool_pre_ping=True)
        return cls(engine, str(where))

    @classmethod
    def _sqlite(cls, path: Path) -> "Database":
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"the folder {path.parent} cannot be made ({error.strerror}); set HACHI_HOME to one that can"
            ) from error
        url = URL.create("sqlite+loop", database=str(path))
        engine = create_async_engine(url, connect_args={"timeout": _BUSY_SECONDS})
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return cls(engine, str(path))

    @property
    def sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        with _translated(self.where):
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self, lock: Iterable[str] = ()) -> AsyncIterator[AsyncConnection]:
        """One transaction: durable when the block ends without an error.

        `lock` names what is decided here. On PostgreSQL nobody else decides on any of these at the same
        time; on SQLite nobody else writes at all.
        """
        with _translated(self.where):
            async with self._turn, self._engine.connect() as connection:
                await connection.execution_options(hachi_write=True)
                connection.info[_ONCE_DURABLE] = []
                await self._begin(connection)  # left by an error, the connection rolls back as it is closed
                if not self.sqlite:
                    for name in sorted(lock):
                        await connection.execute(_LOCK, {"name": name})
                yield connection
                await connection.commit()
                self.writes += 1
                for act in connection.info[_ONCE_DURABLE]:
                    act()

    @staticmethod
    def once_durable(connection: AsyncConnection, act: Callable[[], None]) -> None:
        """Have `act` called when this write is committed; never, where it is not."""
        connection.info[_ONCE_DURABLE].append(act)

    async def _begin(self, connection: AsyncConnection) -> None:
        """Only another process can hold SQLite's write lock here; it is asked again until it has let go."""
        give_up = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                await connection.begin()
                return
            except OperationalError as error:
                if "locked" not in str(error.orig) or time.monotonic() > give_up:
                    raise
                await asyncio.sleep(0.005)

    async def revision(self) -> str | None:
        """The migration the tables are at; None where there are no tables."""

        def look(connection: Connection) -> str | None:
            if not connection.dialect.has_table(connection, "alembic_version"):
                return None
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()

        async with self.read() as connection:
            return await connection.run_sync(look)

    async def migrate(self) -> bool:
        """Bring the tables to the newest shape. True when there was something to do."""
        if not await self._behind():
            return False
        config_for = await asyncio.to_thread(_alembic_config)
        async with self.write(lock=["migrate"]) as connection:
            await connection.run_sync(lambda c: _upgrade(config_for, c))
        return True

    async def _behind(self) -> bool:
        revision = await self.revision()
        if revision is not None and revision > HEAD:
            raise StoreUnavailable(f"{self.where} was written by a newer Hachi ({revision}); update this one")
        return revision != HEAD

    async def close(self) -> None:
        await self._engine.dispose()


_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def _alembic_config() -> Any:
    """Alembic takes a while to load, and is only needed when there is something to migrate."""
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config


def _upgrade(config: Any, connection: Connection) -> None:
    from alembic import command

    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # 0.3 ms a commit, and it survives a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA mmap_size=1073741824")  # pages are read where they lie: half the time of a search
    cursor.execute("PRAGMA busy_timeout=0")  # from here on nothing may wait on the event loop
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get("hachi_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # a read needs none: each statement sees one state


class _translated:
    """What the engine raises becomes StoreUnavailable, with what to do about it."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, DBAPIError):
            cause = error.orig or error
            if isinstance(error, IntegrityError) or getattr(cause, "sqlstate", None) in _IN_THE_WAY:
                raise Overtaken(
                    f"{self._where}: somebody else changed the same just now; try again"
                ) from error
            raise StoreUnavailable(_explain(cause, self._where)) from error
        if isinstance(error, StatementError) and isinstance(error.orig, ValueError):
            raise error.orig  # a value that no database is asked to keep, such as a time without a zone
        if isinstance(error, PoolTimeoutError):
            raise StoreUnavailable(f"{self._where}: too much is asked at once; try again") from error
        if isinstance(error, OSError):
            raise StoreUnavailable(f"{self._where} cannot be reached ({error.strerror or error})") from error


_IN_THE_WAY = {"40P01", "40001"}
"""PostgreSQL's codes for a deadlock that it broke and for two transactions that cannot both be."""


def _explain(error: BaseException, where: str) -> str:
    lines = str(error).splitlines()
    reason = lines[0].rpartition(">: ")[2] if lines else type(error).__name__
    for sign, advice in _ADVICE:
        if sign in reason:
            return f"{where}: {advice}"
    return f"{where}: {reason}"


_ADVICE = (
    ("file is not a database", "this is no database, or a damaged one; move it away and restore a copy"),
    ("malformed", "the database is damaged; move it away and restore a copy"),
    ("disk is full", "the disk is full; make room, nothing that was accepted is lost"),
    ("disk I/O error", "the disk cannot be written; see that it has room and is sound"),
    ("readonly database", "the folder or file is read-only; give write access or set HACHI_HOME"),
    ("unable to open database file", "cannot be opened; check the folder's permissions or set HACHI_HOME"),
    ("database is locked", "another process has kept the database busy; try again when it is done"),
    ("password authentication failed", "the server refused the password in DATABASE_URL"),
)
