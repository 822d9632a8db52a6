"""`hachi backup` and `restore`: the way back."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import Yes
from agent.surfaces.cli.output import progress_bar, say
from agent.surfaces.cli.session import Session, database_urls, with_session

if TYPE_CHECKING:
    from agent.services.transfer.backup import BackedUp
    from agent.settings import Settings

_FILES = {"DATABASE_URL": "hachi.db", "HACHI_TRACES_URL": "traces.db"}
"""What a backup calls each database."""

Folder = Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the backup.")]


@with_session
async def backup(session: Session, path: Folder) -> None:
    """Copy everything into a new folder, also while Hachi runs. The index is rebuilt, and not copied."""
    settings = session.settings()
    from agent.services.transfer.backup import back_up

    databases = _databases(settings)
    with progress_bar() as bar:
        task = bar.add_task("copying", total=len(databases))
        done = await asyncio.to_thread(
            back_up, settings.home, databases, path, datetime.now(UTC), lambda _: bar.advance(task)
        )
    say(f"{_told(done)} are in {path}; `hachi restore {path}` brings them back")


@with_session
async def restore(session: Session, path: Folder, yes: Yes = False) -> None:
    """Bring a backup back into an empty data folder, or with --yes over what is there. Nothing may run."""
    settings = session.settings()
    from agent.services.transfer.backup import restore

    databases = _databases(settings)
    with progress_bar() as bar:
        task = bar.add_task("restoring", total=len(databases))
        done = await asyncio.to_thread(
            restore, settings.home, databases, path, replace=yes, progress=lambda _: bar.advance(task)
        )
    say(f"{_told(done)} are back; the next search rebuilds the index")


def _told(files: "list[BackedUp]") -> str:
    return f"{len(files)} files ({sum(file.bytes for file in files) / 1e6:.1f} MB)"


def _databases(settings: "Settings") -> dict[str, Path]:
    """Return the path of each SQLite database, by its name in a backup. Raises BadInput where memories are in
    PostgreSQL."""
    from memory.sql.engine import Database

    found = {}
    for name, url in database_urls(settings):
        database = Database.connect(url, settings.home, name)
        if database.sqlite:
            found[_FILES[name]] = Path(database.where)
        elif name == "DATABASE_URL":
            raise BadInput(f"{database.where} is backed up and restored by pg_dump and pg_restore")
        else:
            say(f"traces are in {database.where}, which pg_dump backs up")
    return found
