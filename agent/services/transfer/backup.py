"""Copies the SQLite databases of a home, also while other processes write, and brings a copy back.

A backup is a folder. Its manifest is written last, so one that was interrupted has none. The indexes are not
part of it: they are rebuilt from the database.
"""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.errors import BadInput
from agent.types.home_files import DATABASES, DECISIONS, TYPED, rotated
from memory.errors import StoreUnavailable
from memory.index.embedded.folder import delete_unheld
from memory.sql.engine.loop_sqlite import FOREIGN, read_only_uri
from memory.sql.engine.schema import HEAD
from memory.sql.tables import metadata
from memory.sql.tables.triggers import ON_SQLITE

FORMAT, VERSION = "hachi-backup", 1
MANIFEST = "manifest.json"
OTHERS = (*rotated(DECISIONS), TYPED)
"""Files of the home that are copied beside the databases. The log is not."""
BUSY_SECONDS = 15.0

Progress = Callable[[str], None]
"""Called with the name of each file that is done."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What the manifest says of one file."""

    name: str
    bytes: int
    sha256: str


def back_up(
    home: Path, databases: Mapping[str, Path], target: Path, now: datetime, progress: Progress
) -> list[BackedUp]:
    """Copy the databases, by their name in the backup, and the other files of the home into the new folder
    `target`. Blocks; other processes go on meanwhile. Raises BadInput, StoreUnavailable and OSError, and then
    leaves nothing."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target} is there already; name a new folder for the backup")
    for path in databases.values():
        if not path.is_file():
            raise BadInput(f"there is no database {path}, so there is nothing to back up")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        files, revisions = [], []
        for name, path in databases.items():
            revisions.append(_copy_database(path, target / name))
            files.append(_described(target / name))
            progress(name)
        for path in _other_files(home):
            _copy(path, target / path.name)
            files.append(_described(target / path.name))
            progress(path.name)
        manifest = {"format": FORMAT, "version": VERSION, "created_at": now.isoformat()}
        manifest |= {"revision": max(revisions), "files": [asdict(file) for file in files]}
        text = json.dumps(manifest, indent=2)
        _write(target / MANIFEST, text.encode())
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return files


def restore(
    home: Path, databases: Mapping[str, Path], source: Path, *, replace: bool, progress: Progress
) -> list[BackedUp]:
    """Check the backup, then bring it back; with `replace` also over what is there. The indexes are deleted,
    to be rebuilt. Raises BadInput for a folder that is no whole backup or a home that has data, and
    StoreUnavailable if a process uses it; then nothing is changed."""
    files = _checked(source)
    targets = {file.name: databases.get(file.name, home / file.name) for file in files}
    there = [path for path in targets.values() if path.suffix == ".db" and path.exists()]
    if there and not replace:
        raise BadInput(f"{there[0]} is there already; --yes replaces it with the backup")
    for path in there:
        _require_ours(path)
        require_unused(path)
    copies = {}
    try:
        for name, path in targets.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copies[name] = path.with_name(f"{path.name}.restoring")
            _copy(source / name, copies[name])
            progress(name)
    except BaseException:
        for path in copies.values():
            path.unlink(missing_ok=True)
        raise
    delete_unheld(home / "index", locks=True)  # of the database that goes
    for name, path in targets.items():
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        copies[name].replace(path)
        _sync(path.parent)
    return files


def _checked(source: Path) -> list[BackedUp]:
    """Return the files of a backup that is whole and undamaged."""
    try:
        manifest: dict[str, Any] = json.loads((source / MANIFEST).read_bytes())
        files = [BackedUp(**file) for file in manifest["files"]]
        known = (manifest["format"], manifest["version"]) == (FORMAT, VERSION)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"{source} has no {MANIFEST}, so it is no whole backup; files that were copied by hand may lack "
            "what was written last"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{source / MANIFEST} cannot be read, so {source} is no backup") from None
    if not known or manifest["revision"] > HEAD:
        raise BadInput(f"{source} was written by a newer hachi; upgrade this one")
    for file in files:
        path = source / file.name
        if file.name not in (*DATABASES, *OTHERS):
            raise BadInput(f"{path} is nothing that hachi backs up; nothing was restored")
        if path.parent != source or path.is_symlink() or not path.is_file() or _described(path) != file:
            raise BadInput(f"{path} is not the file that was backed up; use another backup")
        if path.suffix == ".db":
            _require_sound(path)
    return files


def _copy_database(path: Path, copy: Path) -> str:
    """Copy the database as it is at one moment, with what its log holds. Returns the migration that its
    tables are at."""
    uri = read_only_uri(path)
    try:
        with closing(sqlite3.connect(uri or path, timeout=BUSY_SECONDS, uri=bool(uri))) as database:
            database.execute("VACUUM INTO ?", (str(copy),))
        copy.chmod(0o600)
        with closing(sqlite3.connect(copy)) as database, database:
            database.execute("PRAGMA application_id=0")  # it is a database of its own: `Database.identity`
            [revision] = database.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be copied: {error}") from error
    _require_sound(copy)
    _sync(copy)
    return str(revision)


# Triggers, views and virtual tables have no page of their own.
_FOREIGN = """
    SELECT type, name FROM sqlite_master
    WHERE type != 'index' AND NOT (
        type = 'table' AND rootpage > 0
        AND (name IN (SELECT value FROM json_each(?)) OR substr(name, 1, 7) = 'sqlite_')
    ) AND NOT (type = 'trigger' AND sql IN (SELECT value FROM json_each(?)))
"""


def _require_sound(path: Path) -> None:
    """Raise StoreUnavailable for a damaged database, and BadInput for one with more than Hachi's tables: what
    is in it would run, or be kept, in the home that it is brought back to."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as database:
            hachis = ([*metadata.tables, "alembic_version"], [*ON_SQLITE.values()])
            foreign = database.execute(_FOREIGN, [json.dumps(names) for names in hachis]).fetchone()
            [found] = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        foreign, found = None, str(error)
    if foreign:
        raise BadInput(f"{path.name} has a {foreign[0]} {foreign[1]!r}, which is not of hachi; drop it first")
    if found != "ok":
        raise StoreUnavailable(f"{path} is damaged: {' '.join(found.split())}")


def _require_ours(path: Path) -> None:
    """Raise BadInput before another program's database. A damaged one may be Hachi's."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(uri, uri=True)) as database:
        if database.execute(FOREIGN).fetchone()[0]:
            raise BadInput(f"{path} holds another program's tables; nothing was restored")


def require_unused(path: Path) -> None:
    """Raise StoreUnavailable if another process has the database open. Only the last connection may end the
    write-ahead log, which brings what it holds into the file."""
    try:
        with closing(sqlite3.connect(path, timeout=0)) as database:
            [mode] = database.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode != "delete":  # SQLite keeps the mode where it cannot change it, and says nothing
            raise StoreUnavailable(f"{path} may be in use by another hachi process; stop it first")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreUnavailable(f"{path} is in use by another hachi process; stop it first") from error
    except sqlite3.DatabaseError:
        pass  # a damaged one, which is to be replaced


def _other_files(home: Path) -> Iterator[Path]:
    yield from (path for name in OTHERS if (path := home / name).is_file())


def _copy(path: Path, copy: Path) -> None:
    with path.open("rb") as read, copy.open("wb") as written:
        copy.chmod(0o600)
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
    _sync(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _described(path: Path) -> BackedUp:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackedUp(path.name, path.stat().st_size, digest)
