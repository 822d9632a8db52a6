"""The database: SQLite in WAL mode by default, PostgreSQL by URL; and its migrations.

Two ways in: `database.read()` and `database.write()`, each one transaction. On SQLite a write takes the
lock at once (BEGIN IMMEDIATE), so that what it reads still holds when it writes.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from memory.errors import StoreUnavailable

HEAD = "0001"
"""The newest migration; `tests/memory/test_database.py` holds it to the files."""

_BUSY_MS = 15_000
"""How long a write waits for another process's write on SQLite."""


class Database:
    """Open with `Database.open`; every fault of the engine comes out as StoreUnavailable, in one line."""

    def __init__(self, engine: AsyncEngine, where: str) -> None:
        self._engine = engine
        self.where = where
        """What to call it in messages: a path, or the server without its password."""

    @classmethod
    async def open(cls, url: str | None, home: Path) -> "Database":
        """SQLite in `home` (made and migrated as needed) where `url` is None; else that PostgreSQL, which
        must have been migrated with `hachi migrate`."""
        database = cls.connect(url, home)
        try:
            if database.sqlite:
                await database.migrate()
            elif await database.revision() != HEAD:
                raise StoreUnavailable(f"the tables in {database.where} are missing or old: run `hachi migrate`")
        except BaseException:
            await database.close()
            raise
        return database

    @classmethod
    def connect(cls, url: str | None, home: Path) -> "Database":
        """The engine alone: nothing is opened or migrated yet."""
        if url is None:
            return cls._sqlite(home / "hachi.db")
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise StoreUnavailable("DATABASE_URL is no URL; expected postgresql://user@host/name") from error
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            return cls._sqlite(Path(parsed.database))
        if parsed.drivername.split("+")[0] not in {"postgresql", "postgres"}:
            raise StoreUnavailable(
                f"DATABASE_URL names {parsed.drivername}; Hachi keeps its record in postgresql:// or sqlite://"
            )
        try:
            importlib.import_module("asyncpg")
        except ImportError as error:
            raise StoreUnavailable("PostgreSQL needs its driver: pip install 'hachi[postgres]'") from error
        parsed = parsed.set(drivername="postgresql+asyncpg")
        engine = create_async_engine(parsed, pool_pre_ping=True, connect_args={"timeout": 10})
        return cls(engine, parsed.set(drivername="postgresql").render_as_string(hide_password=True))

    @classmethod
    def _sqlite(cls, path: Path) -> "Database":
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(
                f"the folder {path.parent} cannot be made ({error.strerror}); set HACHI_HOME to one that can"
            ) from error
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": _BUSY_MS / 1000})
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
            async with self._engine.connect() as connection:
                await connection.execution_options(hachi_write=True)
                async with connection.begin():
                    if not self.sqlite:
                        for name in sorted(lock):
                            await connection.execute(_LOCK, {"name": name})
                    yield connection

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
        if await self.revision() == HEAD:
            return False
        config_for = await asyncio.to_thread(_alembic_config)
        async with self.write(lock=["migrate"]) as connection:
            await connection.run_sync(lambda c: _upgrade(config_for, c))
        return True

    async def close(self) -> None:
        await self._engine.dispose()


_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def _alembic_config() -> Any:
    """Alembic takes a while to load, and is only needed when there is something to migrate."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
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
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("hachi_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


class _translated:
    """What the engine raises becomes StoreUnavailable, with what to do about it."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, (OperationalError, InterfaceError, DBAPIError)) and not _ours(error):
            raise StoreUnavailable(_explain(error, self._where)) from error
        if isinstance(error, OSError):
            raise StoreUnavailable(f"{self._where} cannot be reached ({error.strerror or error})") from error


def _ours(error: DBAPIError) -> bool:
    """A broken constraint is for the store to handle, not a database that is unavailable."""
    from sqlalchemy.exc import IntegrityError

    return isinstance(error, IntegrityError)


def _explain(error: DBAPIError, where: str) -> str:
    reason = str(error.orig).splitlines()[0] if error.orig and str(error.orig) else type(error).__name__
    for sign, advice in _ADVICE:
        if sign in reason:
            return f"{where}: {advice}"
    return f"{where}: {reason}"


_ADVICE = (
    ("file is not a database", "this is no database, or a damaged one; move it away and restore a copy"),
    ("malformed", "the database is damaged; move it away and restore a copy"),
    ("disk is full", "the disk is full; make room, nothing that was accepted is lost"),
    ("readonly database", "the folder or file is read-only; give write access or set HACHI_HOME"),
    ("unable to open database file", "cannot be opened; check the folder's permissions or set HACHI_HOME"),
    ("database is locked", "another process has kept the database busy; try again when it is done"),
    ("password authentication failed", "the server refused the password in DATABASE_URL"),
)
