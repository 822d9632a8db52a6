"""Creates the tables of a new database, or converts those of the second edition.

A conversion is one transaction: one that was killed begins anew at the next start, and other processes wait
for its lock.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from memory.errors import StoreUnavailable
from memory.sql.tables import metadata
from memory.sql.tables.triggers import create_triggers

HEAD = "0023"
"""The newest migration. A test compares it with the migration files."""
SECOND_EDITION = "0022"
"""What the tables of the second edition were at in the end."""
MOVING = "moving"
"""Begins the revision of a database that everything is being moved into."""

Tell = Callable[[int, int], None]
"""Called with how many steps of a conversion are done, and how many there are."""

log = logging.getLogger("hachi.memory")


def outdated(revision: str | None, where: str) -> bool:
    """Whether there are no tables, or older ones than this version's. Raises StoreUnavailable for tables that
    this version can neither use nor convert."""
    if revision is None or revision == HEAD:
        return revision is None
    if revision.startswith(MOVING):
        raise StoreUnavailable(f"a move into {where} is not finished: run `hachi move` again")
    if revision > HEAD:
        raise StoreUnavailable(f"{where} was written by a newer Hachi ({revision}); update this one")
    if revision < SECOND_EDITION:
        raise StoreUnavailable(
            f"{where} is older ({revision}) than what this Hachi converts ({SECOND_EDITION}): open it once "
            f"with the last version of the second edition, or begin with another home"
        )
    return True


def read_revision(connection: Connection) -> str | None:
    """The migration that the tables are at; None if there are none."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def create(connection: Connection) -> None:
    """Create the newest tables. A test compares them with those that a conversion leaves."""
    metadata.create_all(connection)
    create_triggers(connection)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def copy_of(database: Path) -> Path:
    """Where the copy of SQLite's file is that a conversion makes."""
    return database.with_name(f"{database.name}.second-edition")


async def back_up(database: Path) -> None:
    """Copy SQLite's file as it is before its conversion, unless that was done already."""
    copy = copy_of(database)
    if not copy.exists():
        await asyncio.to_thread(_copy, database, copy)
        log.warning("%s is converted to the third edition; %s is a copy of it as it was", database, copy)


def _copy(database: Path, copy: Path) -> None:
    new = copy.with_name(f"{copy.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(new)) as target:
        source.backup(target)
        [[revision]] = target.execute("SELECT version_num FROM alembic_version")
    if revision == SECOND_EDITION:
        new.replace(copy)
    else:  # another process has converted it meanwhile
        new.unlink()


async def converter(tell: Tell) -> Callable[[Connection], None]:
    """What converts the tables, in the caller's transaction. Alembic is imported here, because that takes
    0.1 s and only a conversion needs it."""
    config = await asyncio.to_thread(_alembic_config)

    def convert(connection: Connection) -> None:
        from alembic import command

        config.attributes |= {"connection": connection, "tell": tell}
        command.upgrade(config, "head")
        create_triggers(connection)

    return convert


def _alembic_config() -> Any:
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parents[1] / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config
