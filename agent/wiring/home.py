"""The data folder, which only its owner may read, and the database that is in it or at a server."""

import fnmatch
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from agent.settings import Settings
from memory.errors import StoreUnavailable
from memory.sql.engine import Database

log = logging.getLogger("hachi")

FILES = ("hachi.db*", "traces.db*", "hachi.log*", "decisions.jsonl*", "chat_history", "embedders.json")
INDEX = "index"
"""What Hachi writes in its data folder. Other files there are somebody else's."""


async def open_database(closing: AsyncExitStack, settings: Settings) -> Database:
    """The database of the settings, open until `closing` ends; the data folder is made private before and
    after, for the files that were made meanwhile. Raises StoreUnavailable, also where the database is missing
    and was there."""
    url = settings.database_url.get_secret_value() if settings.database_url else None
    remove_obsolete(settings.home)
    make_private(settings.home)
    closing.callback(make_private, settings.home)
    if url is None and (lost := lost_database(settings.home)):
        raise StoreUnavailable(lost)
    database = await Database.open(url, settings.home)
    closing.push_async_callback(database.close)
    closing.push_async_callback(_count_writes, database)
    if database.older:
        log.warning("%s", database.older)
    return database


async def _count_writes(database: Database) -> None:
    try:
        await database.count_writes()
    except StoreUnavailable as error:
        log.warning("the writes are not counted: %s", error)


def make_private(home: Path) -> None:
    """Take the rights of others from the data folder (mode 0700) and from Hachi's files in it (0600), also if
    an earlier version or another program made them. Skips what belongs to another user of the system."""
    if not (found := list(hachis_files(home))):
        return  # nothing of Hachi's is here yet, and the folder may be anybody's
    for path in (str(home), *found):
        with suppress(OSError):
            _tighten(path)


def remove_obsolete(home: Path) -> None:
    """Delete what earlier versions kept: embeddings in a file, since texts can be guessed from them, and
    indexes in other folders."""
    for file in home.glob("embeddings.sqlite3*"):
        with suppress(OSError):
            file.unlink()
    if (home / INDEX / "edge_config.json").exists():
        shutil.rmtree(home / INDEX, ignore_errors=True)
    shutil.rmtree(home / "knowledge", ignore_errors=True)


def hachis_files(home: Path) -> Iterator[str]:
    """Yield Hachi's files in the data folder, and the folders of its indexes with all that is in them."""
    if home.is_dir():
        names = os.listdir(home)
        yield from (os.path.join(home, name) for pattern in FILES for name in fnmatch.filter(names, pattern))
    for folder, _, files in os.walk(home / INDEX):
        yield folder
        yield from (os.path.join(folder, file) for file in files)


def lost_database(home: Path) -> str | None:
    """Say that the database is missing where it was, in one line: opening it would begin an empty one."""
    file = home / "hachi.db"
    if not (home / INDEX).is_dir() or (file.exists() and file.stat().st_size):
        return None
    return (
        f"{file} is missing or empty, and {INDEX} of an earlier one is there; put a copy back "
        "before anything else runs, or delete what is left to begin anew"
    )


def _tighten(path: str) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX:
        return  # a link leads elsewhere; a sticky folder such as /tmp is everybody's
    wanted = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
    if stat.S_IMODE(found.st_mode) & ~wanted and found.st_uid == os.geteuid():
        os.chmod(path, stat.S_IMODE(found.st_mode) & wanted)
