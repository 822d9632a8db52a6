"""Copies the SQLite database of a home, even while other processes write, and restores a copy.

A backup is a folder. It gets its name at the end; an interrupted one keeps a temporary name.
"""

import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from agent.errors import BadInput
from agent.types.home_files import DECISIONS, TYPED, rotated
from memory.errors import StoreUnavailable
from memory.sql.engine.loop_sqlite import FOREIGN, read_only_uri
from memory.sql.engine.migrate import FIRST, HEAD
from memory.sql.tables import metadata
from memory.sql.tables.evidence import VIEW
from memory.sql.tables.triggers import ON_SQLITE

OTHERS = (*rotated(DECISIONS), TYPED)
"""Files of the home that are copied with the database. The log is not."""
BUSY_SECONDS = 15.0

DATABASE = "hachi.db"
"""The database's file name in a backup, whatever its name elsewhere."""


def back_up(home: Path, database: Path, target: Path) -> list[Path]:
    """Copy the database and the other files of the home into the new folder `target`, and return the copies.
    Blocks, but other processes can go on. Raises BadInput, StoreUnavailable and OSError; then no files
    remain."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target} is there already; name a new folder for the backup")
    if not database.is_file():
        raise BadInput(f"there is no database {database}, so there is nothing to back up")
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700, parents=True)
    try:
        _copy_database(database, unfinished / DATABASE)
        for name in OTHERS:
            if (home / name).is_file():
                _copy(home / name, unfinished / name)
        unfinished.replace(target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return sorted(target.iterdir())


def restore(home: Path, database: Path, source: Path, *, replace: bool) -> list[Path]:
    """Check the backup, then restore it; with `replace` also over existing data. Returns the restored files.
    Raises BadInput if the folder is no backup or the home has data, and StoreUnavailable if a process uses
    the home; then nothing is changed."""
    files = _checked(source)
    if database.exists():
        if not replace:
            raise BadInput(f"{database} is there already; --yes replaces it with the backup")
        _require_ours(database)
        require_unused(database)
    targets = {file.name: home / file.name for file in files} | {DATABASE: database}
    copies = {}
    try:
        for name, path in targets.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copies[name] = path.with_name(f"{path.name}.restoring")
            _copy(source / name, copies[name])
    except BaseException:
        for path in copies.values():
            path.unlink(missing_ok=True)
        raise
    for ending in ("-wal", "-shm"):
        database.with_name(database.name + ending).unlink(missing_ok=True)
    for name, path in targets.items():
        copies[name].replace(path)
        _sync(path.parent)
    return files


def _checked(source: Path) -> list[Path]:
    """Return the files of a backup. Raises BadInput or StoreUnavailable if one is damaged."""
    if not (source / DATABASE).exists():
        raise BadInput(f"{source} holds no {DATABASE}, so it is no backup")
    files = [source / name for name in (DATABASE, *OTHERS) if (source / name).exists()]
    for file in files:
        if file.is_symlink() or not file.is_file():
            raise BadInput(f"{file} is no file; nothing was restored")
    _require_sound(source / DATABASE)
    return files


_WAL = b"\x02\x02"
"""Bytes 18 and 19 of a database in WAL mode. Copies that SQLite makes with VACUUM are never in it."""


def _copy_database(path: Path, copy: Path) -> None:
    """Copy the database as of one moment, including its write-ahead log."""
    uri = read_only_uri(path)
    try:
        with closing(sqlite3.connect(uri or path, timeout=BUSY_SECONDS, uri=bool(uri))) as database:
            database.execute("VACUUM INTO ?", (str(copy),))
        copy.chmod(0o600)
        with closing(sqlite3.connect(copy)) as database, database:
            # the copy gets an identity of its own: `Database.identity`
            database.execute("PRAGMA application_id=0")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be copied: {error}") from error
    _require_sound(copy)
    _sync(copy)


# Objects without a root page are triggers, views and virtual tables. Migrations drop older triggers.
_FOREIGN = """
    SELECT type, name FROM sqlite_master
    WHERE type != 'index' AND NOT (
        type = 'table' AND rootpage > 0
        AND (:older OR name IN (SELECT value FROM json_each(:tables)) OR substr(name, 1, 7) = 'sqlite_')
    ) AND NOT (type = 'view' AND sql = :view)
    AND NOT (type = 'trigger' AND (:older OR sql IN (SELECT value FROM json_each(:triggers))))
"""


def _require_sound(path: Path) -> None:
    """Raise StoreUnavailable for a damaged database, and BadInput for one that a newer version wrote or that
    was copied by hand. Tables or triggers that are not Hachi's raise BadInput too, since they would become
    part of the home."""
    given = {
        "tables": json.dumps([*metadata.tables, "alembic_version"]),
        "view": VIEW,
        "triggers": json.dumps([*ON_SQLITE.values()]),
    }
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as database:
            [found] = database.execute("PRAGMA quick_check(1)").fetchone()
            [revision] = database.execute("SELECT version_num FROM alembic_version").fetchone()
            older = FIRST <= revision < HEAD
            foreign = database.execute(_FOREIGN, given | {"older": older}).fetchone()
    except (sqlite3.Error, TypeError) as error:
        raise StoreUnavailable(f"{path} is damaged: {error}") from error
    if found != "ok":
        raise StoreUnavailable(f"{path} is damaged: {' '.join(found.split())}")
    with path.open("rb") as file:
        if file.read(20)[18:] == _WAL:
            raise BadInput(f"{path} was copied by hand and may lack what was written last; use hachi backup")
    if revision > HEAD:
        raise BadInput(f"{path} was written by a newer hachi; upgrade this one")
    if foreign:
        raise BadInput(f"{path.name} has a {foreign[0]} {foreign[1]!r}, which is not of hachi; drop it first")


def _require_ours(path: Path) -> None:
    """Raise BadInput for another program's database. A damaged file may be Hachi's: accept it."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(uri, uri=True)) as database:
        if database.execute(FOREIGN).fetchone()[0]:
            raise BadInput(f"{path} holds another program's tables; nothing was restored")


def require_unused(path: Path) -> None:
    """Raise StoreUnavailable if another process has the database open. Closing the last connection to a
    database merges its write-ahead log."""
    try:
        with closing(sqlite3.connect(path, timeout=0)) as database:
            [mode] = database.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode != "delete":  # if SQLite cannot change the mode, it keeps it silently
            raise StoreUnavailable(f"{path} may be in use by another hachi process; stop it first")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreUnavailable(f"{path} is in use by another hachi process; stop it first") from error
    except sqlite3.DatabaseError:
        pass  # a damaged database, which will be replaced


def _copy(path: Path, copy: Path) -> None:
    with path.open("rb") as read, copy.open("wb") as written:
        copy.chmod(0o600)
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
