"""Open and migrate the database: SQLite in WAL mode by default, PostgreSQL by URL.

In `Database.read()` each statement sees the newest state; `Database.write()` is one transaction. On SQLite a
write takes the lock at once (BEGIN IMMEDIATE), so the rows it has read cannot change before it writes.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Any

from sqlalchemy import ARRAY, Connection, CursorResult, Executable, Text, bindparam, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.util import await_only, greenlet_spawn

from memory.errors import NotOpen, StoreUnavailable
from memory.process.pace import pause
from memory.process.spans import note_write
from memory.sql.engine.connecting import BUSY_SECONDS, engine_for
from memory.sql.engine.errors import translated
from memory.sql.engine.fence import check_fence
from memory.sql.engine.migrate import (
    back_up,
    converter,
    create,
    drop_copies,
    outdated,
    read_revision,
    require_head,
)

_ROWS_AT_ONCE = 500
"""Rows that are read before other tasks may run: some 3 ms."""
_MOST_IDLE = 4
"""The most connections to SQLite that stay open for single statements: to take one from the pool and give it
back takes as long as a statement."""
_STEP = 64
"""Pages that one transaction removes from the file."""

_NUMBER = "PRAGMA application_id"
_CLUSTER_AND_DATABASE = text(
    "SELECT system_identifier, oid FROM pg_control_system(), pg_database WHERE datname = current_database()"
)
_AFTER_COMMIT = "hachi_after_commit"
_NAMES = "(hashtextextended(name, 0)) FROM (SELECT name FROM unnest(:names) AS name ORDER BY 1) AS ordered"
_LOCK, _LOCK_SHARED = (
    text(f"SELECT pg_advisory_xact_lock{shared}{_NAMES}").bindparams(bindparam("names", type_=ARRAY(Text)))
    for shared in ("", "_shared")
)
"""Locks are taken in the order of their names, so that two transactions cannot deadlock."""


class Database:
    """A database, opened with `Database.open`. It raises all errors of the engine as StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, where: str) -> None:
        self.engine = engine
        self.where = where
        """The database's name in messages: a path, or the server without its password."""
        self.sqlite = engine.dialect.name == "sqlite"
        # Without BEGIN, SQLite commits each statement by itself, so it needs no option.
        self._reading = engine if self.sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writing = engine.execution_options(hachi_write=True)
        self.writes = 0
        """The number of transactions that this process has committed."""
        self._writer = asyncio.Lock()
        self._idle: list[Connection] = []
        """Open connections to SQLite outside the pool, for single statements: without BEGIN there is no
        transaction to end after one."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False
        """Set when the companion is closed."""

    @classmethod
    async def open(cls, url: str | None, home: Path, setting: str = "DATABASE_URL") -> "Database":
        """Open the database at `url`, or the SQLite file in `home`. SQLite's file is created and migrated as
        needed; PostgreSQL must have been migrated. `setting` is the name of the setting with the URL."""
        database = cls.connect(url, home, setting)
        try:
            await database._prepare()
        except BaseException:
            await database.close()
            raise
        return database

    async def _prepare(self) -> None:
        if self.sqlite:
            await self.migrate()
        elif outdated(await self.revision(), self.where):
            raise StoreUnavailable(f"the tables in {self.where} are missing or old: run `hachi migrate`")
        async with self.read() as connection:
            await connection.run_sync(require_head, self.where)

    @classmethod
    def connect(cls, url: str | None, home: Path, setting: str = "DATABASE_URL") -> "Database":
        """Create only the engine, without a migration. It connects with the first transaction."""
        return cls(*engine_for(url, home, setting))

    def check_usable(self) -> None:
        """Raise NotOpen if the database is closed, or in another event loop, where a call would hang."""
        if self.closed:
            raise NotOpen("the companion is closed; open another one")
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None:
                raise NotOpen(
                    "the companion belongs to another event loop; from another thread call it with "
                    "asyncio.run_coroutine_threadsafe(…, loop), or use hachi.sync.Companion"
                )
            self._loop = loop

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        self.check_usable()
        with translated(self.where):
            async with self._reading.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(
        self, lock: Iterable[str] = (), *, shared: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        """Open one transaction, committed if the block ends without an error.

        On PostgreSQL `lock` takes an advisory lock for each name, `shared` or exclusive. Raises StaleClaim if
        another process has claimed this task's job.
        """
        self.check_usable()
        with translated(self.where):
            async with self._writer if self.sqlite else nullcontext(), self._writing.connect() as connection:
                connection.info[_AFTER_COMMIT] = []
                try:
                    await _once_unlocked(connection.begin)
                    if (names := sorted(lock)) and not self.sqlite:
                        await connection.execute(_LOCK_SHARED if shared else _LOCK, {"names": names})
                    await check_fence(connection)
                    yield connection
                    await connection.commit()
                    note_write()
                except BaseException:
                    if self.sqlite:
                        await connection.rollback()
                    raise
                self.writes += 1
                for callback in connection.info[_AFTER_COMMIT]:
                    callback()

    async def rows(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Run one statement as a transaction of its own and return its rows."""
        found: Sequence[Any] = await self._alone(statement, values)
        return found

    async def run(self, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
        """Run one writing statement as a transaction of its own and return how many rows it changed."""
        changed: int = await self._alone(statement, values, attrgetter("rowcount"))
        return changed

    async def _alone(
        self,
        statement: Executable,
        values: Mapping[str, Any] | None,
        told: Callable[[CursorResult[Any]], Any] | None = None,
    ) -> Any:
        """Run a statement that commits by itself. On SQLite a writing one waits for other writers."""

        def ask() -> Any:  # bypasses the asynchronous connection, which takes longer than the statement
            idle = self._idle
            connection = idle.pop() if idle else self._reading.sync_engine.connect()
            try:
                found = (told or _all)(connection.execute(statement, values))
            except BaseException:
                connection.close()
                raise
            if self.sqlite and len(idle) < _MOST_IDLE:
                connection.detach()
                idle.append(connection)
            else:
                connection.close()
            return found

        self.check_usable()
        with translated(self.where):
            if statement.is_dml and self.sqlite:
                async with self._writer:
                    found = await _once_unlocked(lambda: greenlet_spawn(ask))
            else:
                found = await greenlet_spawn(ask)
        self.writes += statement.is_dml
        return found

    @staticmethod
    def after_commit(connection: AsyncConnection, callback: Callable[[], None]) -> None:
        """Call `callback` once this write is committed, and never if it is rolled back."""
        connection.info[_AFTER_COMMIT].append(callback)

    async def empty_log(self, within: float = 1.0) -> bool:
        """Empty SQLite's write-ahead log, which still contains deleted texts. False if others still read
        after `within` seconds."""
        give_up = time.monotonic() + within
        while self.sqlite:
            async with self.read() as connection:
                [busy, *_] = (await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")).one()
            if not busy:
                break
            if time.monotonic() > give_up:
                return False
            await asyncio.sleep(0.01)
        return True

    async def vacuum(self) -> None:
        """Rewrite SQLite's file without free pages, which may contain parts of moved rows. Takes 5 ms a
        megabyte. Raises StoreUnavailable if another process prevents it."""
        if self.sqlite:
            async with self._writer, self.read() as connection:
                await _once_unlocked(lambda: connection.exec_driver_sql("VACUUM"))
            if not await self.empty_log(BUSY_SECONDS):
                raise StoreUnavailable(
                    f"{self.where} still holds what was deleted, since another process reads it; try again "
                    "when that is done"
                )

    async def give_back(self) -> None:
        """Remove free pages from SQLite's file, in steps of some milliseconds."""
        if not self.sqlite:
            return
        async with self.read() as connection:
            left = (await connection.exec_driver_sql("PRAGMA freelist_count")).scalar() or 0
        for _ in range(0, left, _STEP):
            async with self.write() as connection:
                for _ in range(_STEP):  # one page a call: the driver does not run a PRAGMA to its end
                    await connection.exec_driver_sql("PRAGMA incremental_vacuum(1)")
        if left:
            await self.empty_log()

    async def damage(self) -> list[str]:
        """Return at most five faults that SQLite's quick check reports. It reads the whole file."""
        if not self.sqlite:
            return []
        async with self.read() as connection:
            found = await connection.exec_driver_sql("PRAGMA quick_check(5)")
            return [row[0] for row in found if row[0] != "ok"]

    async def identity(self) -> str:
        """Return twelve characters that identify this database, from its number and SQLite's path."""
        named = await self.number()
        named += f" {self.where}" if self.sqlite else ""
        return hashlib.sha256(named.encode()).hexdigest()[:12]

    async def number(self) -> str:
        """Return the number of this database. A copy of SQLite's folder has the same number; a database that
        data is restored or moved into has another one."""
        if not self.sqlite:
            [row] = await self.rows(_CLUSTER_AND_DATABASE)
            return f"{row[0]} {row[1]}"
        async with self.read() as connection:
            if number := (await connection.exec_driver_sql(_NUMBER)).scalar():
                return str(number)
        async with self.write() as connection:
            number = (await connection.exec_driver_sql(_NUMBER)).scalar() or secrets.randbelow(2**31 - 1) + 1
            await connection.exec_driver_sql(f"{_NUMBER}={number}")
        return str(number)

    async def revision(self) -> str | None:
        """Return the newest migration that was applied; None without tables. Raises StoreUnavailable if the
        tables are another program's."""
        async with self.read() as connection:
            return await connection.run_sync(read_revision, self.where)

    async def migrate(self, *, backed_up: bool = False) -> bool:
        """Create the tables, or convert older ones. SQLite's file is copied before a conversion; PostgreSQL
        must be `backed_up`. Returns False if the tables were up to date."""
        revision = await self.revision()
        if not outdated(revision, self.where):
            return False
        if revision and not (self.sqlite or backed_up):
            raise StoreUnavailable(
                f"{self.where} is older ({revision}) and will be converted: make a backup of it, with "
                "pg_dump for instance, and run `hachi migrate --yes`"
            )
        if revision and self.sqlite:
            await back_up(Path(self.where))
        convert = await converter() if revision else None
        async with self.write(lock=["migrate"]) as connection:
            now = await connection.run_sync(read_revision, self.where)  # another process may have been first
            if now is None:
                await connection.run_sync(create)
            elif convert and outdated(now, self.where):
                await connection.run_sync(convert)
            else:
                return False
        return True

    def drop_copies(self) -> None:
        """Delete the copies that conversions made, because they contain forgotten texts."""
        if self.sqlite:
            drop_copies(Path(self.where))

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        await self.engine.dispose()


def _all(result: CursorResult[Any]) -> list[Any]:
    """Return the rows. Must run in a greenlet, because it lets other tasks run between parts."""
    found: list[Any] = []
    while len(part := result.fetchmany(_ROWS_AT_ONCE)) == _ROWS_AT_ONCE:
        found += part
        await_only(pause())
    return [*found, *part]


async def _once_unlocked(act: Callable[[], Awaitable[Any]]) -> Any:
    """Return what `act` returns. Retries for `BUSY_SECONDS` while another process has SQLite's write lock."""
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return await act()
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > give_up:
                raise
            await asyncio.sleep(0.005)
