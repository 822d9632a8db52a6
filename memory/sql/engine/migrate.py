"""Create the tables of a new database, or convert older ones.

A conversion is one transaction. If it is killed, it runs again at the next start. Other processes wait for
its lock.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from memory.errors import StoreUnavailable
from memory.sql.tables import metadata
from memory.sql.tables.evidence import create_view
from memory.sql.tables.triggers import create_triggers, drop_triggers, trigger_texts

HEAD = "0032"
"""The newest migration. A test compares it with the migration files."""
FIRST = "0023"
"""The oldest migration that can be converted."""
MIGRATIONS = Path(__file__).parents[1] / "migrations"
OURS = "memory_owners"
"""A table of every Hachi database. No other program is likely to use its name."""
MOVING = "moving"
"""The prefix of the revision of a database while `hachi move` fills it."""

COPIES = (".before-conversion", ".second-edition")
"""The endings of copies of SQLite's file: the one a conversion makes, and the one of earlier versions."""
log = logging.getLogger("hachi.memory")


def outdated(revision: str | None, where: str) -> bool:
    """Return whether there are no tables, or older ones than this version's. Raises StoreUnavailable for
    tables that this version can neither use nor convert."""
    if revision is None or revision == HEAD:
        return revision is None
    if revision.startswith(MOVING):
        raise StoreUnavailable(f"a move into {where} is not finished: run `hachi move` again")
    if revision > HEAD:
        raise StoreUnavailable(f"{where} was written by a newer Hachi ({revision}); update this one")
    if revision < FIRST:
        raise StoreUnavailable(
            f"{where} is older ({revision}) than what this Hachi converts ({FIRST}): begin with another home"
        )
    return True


_OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    "postgresql": """
        SELECT CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind = 'v' THEN 'view' ELSE 'index' END,
        relname, NULL FROM pg_class
        WHERE relkind IN ('r', 'p', 'v', 'i', 'I') AND relnamespace = current_schema()::regnamespace
        UNION ALL SELECT 'trigger', tgname, prosrc
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE NOT tgisinternal AND tgenabled <> 'D' AND relnamespace = current_schema()::regnamespace
    """,
}
_SHOWN = 5
"""How many names a message lists."""


def read_revision(connection: Connection, where: str) -> str | None:
    """Return the newest migration that was applied; None without tables. Raises StoreUnavailable if the
    tables are another program's."""
    there = set(inspect(connection).get_table_names())
    if there and OURS not in there:
        raise StoreUnavailable(
            f"{where} holds another program's tables ({_listed(there)}) and none of Hachi's: name an empty "
            "database"
        )
    if "alembic_version" not in there:
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def require_head(connection: Connection, where: str) -> None:
    """Raise StoreUnavailable if a table, index or trigger of the newest version is missing or different."""
    dialect = connection.dialect.name
    there = {(kind, name): body for kind, name, body in connection.exec_driver_sql(_OBJECTS[dialect])}
    tables = metadata.tables.values()
    wanted = {("view", "rests_on"), *(("table", table.name) for table in tables)}
    wanted |= {("index", str(index.name)) for table in tables for index in table.indexes}
    missing = [f"the {kind} {name}" for kind, name in wanted - there.keys()]
    for name, body in trigger_texts(dialect).items():
        if there.get(("trigger", name)) != body:
            missing.append(f"the trigger {name}")
    if missing:
        raise StoreUnavailable(
            f"{where} lacks {_listed(missing)} as this version makes them, so it is of another version or was"
            " changed: restore a backup, or begin with another home"
        )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def create(connection: Connection) -> None:
    """Create the newest tables. A test compares them with those that a conversion leaves."""
    metadata.create_all(connection)
    create_view(connection)
    create_triggers(connection)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


async def back_up(database: Path) -> None:
    """Copy SQLite's file before its conversion."""
    if copy := await asyncio.to_thread(_copy, database):
        log.warning("%s is converted to %s; %s is a copy of it as it was", database, HEAD, copy)


def _copy(database: Path) -> Path | None:
    copy = database.with_name(f"{database.name}{COPIES[0]}")
    new = copy.with_name(f"{copy.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(new)) as target:
        source.backup(target)
        [[revision]] = target.execute("SELECT version_num FROM alembic_version")
    if revision == HEAD:  # another process has converted it meanwhile
        new.unlink()
        return None
    return new.replace(copy)


def drop_copies(database: Path) -> None:
    """Delete the copies that conversions made, because they contain forgotten texts."""
    for ending in COPIES:
        database.with_name(f"{database.name}{ending}").unlink(missing_ok=True)


async def converter() -> Callable[[Connection], None]:
    """Return a function that converts the tables in the caller's transaction. Alembic is imported here,
    because that takes 0.1 s and only a conversion needs it."""
    config = await asyncio.to_thread(_alembic_config)

    def convert(connection: Connection) -> None:
        from alembic import command

        drop_triggers(connection)  # the newer version has other triggers, and a conversion logs no changes
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        create_triggers(connection)

    return convert


def _alembic_config() -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
