"""`hachi migrate`, `backup`, `restore` and `move`: the whole database."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.surfaces.cli.options import Yes
from agent.surfaces.cli.output import Output, print_table, progress_bar, say
from agent.surfaces.cli.session import Session, database_url, with_session

if TYPE_CHECKING:
    from agent.settings import Settings

Folder = Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the backup.")]


@with_session
async def migrate(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="PostgreSQL has been backed up.")] = False,
) -> None:
    """Create the database's tables, or migrate those of an older version."""
    settings = session.settings()
    from memory.sql.engine import Database

    database = Database.connect(database_url(settings), settings.home)
    try:
        done = await database.migrate(backed_up=yes)
        revision = await database.revision()
    finally:
        await database.close()
    print(f"{database.where}: {'brought to' if done else 'already at'} {revision}")


@with_session
async def backup(session: Session, path: Folder) -> None:
    """Copy everything into a new folder, also while Hachi runs. The index is not copied; a restore rebuilds
    it."""
    from agent.services.transfer.backup import back_up

    number = await _copy(session.settings(), back_up, path)
    say(f"{number} files are in {path}; `hachi restore {path}` brings them back")


@with_session
async def restore(session: Session, path: Folder, yes: Yes = False) -> None:
    """Restore a backup into an empty data folder.

    With --yes it replaces the data that is there. Stop every other Hachi first.
    """
    from agent.services.transfer.backup import restore

    number = await _copy(session.settings(), restore, path, replace=yes)
    say(f"{number} files are back; the next search rebuilds the index")


async def _copy(settings: "Settings", act: Callable[..., list[Path]], path: Path, **options: bool) -> int:
    """Back up or restore, and return the number of files. Raises BadInput for PostgreSQL."""
    from memory.sql.engine import Database

    database = Database.connect(database_url(settings), settings.home)
    if not database.sqlite:
        raise BadInput(f"{database.where} is backed up and restored by pg_dump and pg_restore")
    return len(await asyncio.to_thread(act, settings.home, Path(database.where), path, **options))


@with_session
async def move(
    session: Session,
    to: Annotated[
        str, typer.Option("--to", metavar="DATABASE_URL", help="postgresql://… or sqlite:///FILE; empty.")
    ],
    qdrant: Annotated[
        str | None, typer.Option("--qdrant", metavar="URL", help="Build the index there, too.")
    ] = None,
) -> Output:
    """Move everything to another database, and compare both.

    Stop every other Hachi first. Run it again to continue an interrupted move.
    """
    settings = session.settings()
    if not settings.database_url and not (settings.home / "hachi.db").is_file():
        raise BadInput(f"there is no database {settings.home / 'hachi.db'}, so there is nothing to move")
    from agent.services.transfer.move import Move
    from memory.sql.engine import Database

    async with AsyncExitStack() as closing:
        source = await Database.open(database_url(settings), settings.home)
        closing.push_async_callback(source.close)
        target = Database.connect(to, settings.home, "--to")
        closing.push_async_callback(target.close)
        moving = Move(source, target)
        with progress_bar() as bar:
            task = bar.add_task("moving", total=2 * await moving.rows())
            moved = await moving.run(lambda count: bar.advance(task, count))
    variables = "DATABASE_URL and QDRANT_URL" if qdrant else "DATABASE_URL"
    index = "" if qdrant else "; the next search rebuilds the index"
    say(f"everything is in {target.where} and was compared: set {variables} to it{index}")
    if qdrant:
        await _index(settings, to, qdrant)
    rows = [[table.name, str(table.rows), table.sha256[:12]] for table in moved]
    return Output(
        [asdict(table) for table in moved], lambda: print_table(("table", "rows", "checksum"), rows)
    )


async def _index(settings: "Settings", database: str, qdrant: str) -> None:
    from pydantic import SecretStr

    from agent.companion import Companion

    moved = {"database_url": SecretStr(database), "qdrant_url": qdrant}
    async with Companion.open(settings.model_copy(update=moved), periodic_jobs=False) as pet:
        with progress_bar() as bar:
            task = bar.add_task("indexing", total=await pet.admin.rows_to_index())
            await pet.admin.reindex(lambda count: bar.advance(task, count))
