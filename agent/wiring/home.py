"""The data folder, readable only by its owner, and the database in it or on a server."""

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from agent.settings import Settings
from agent.types.home_files import NAMES
from memory.sql.engine import Database

log = logging.getLogger("hachi")

INDEX = "index"
"""The folder where earlier versions kept an index for each process: `1` with `1.lock`, `2` …"""


async def open_database(closing: AsyncExitStack, settings: Settings) -> Database:
    """Open the database of the settings; `closing` closes it. The data folder is made private before and
    after, for files created meanwhile. Raises StoreUnavailable."""
    url = settings.database_url.get_secret_value() if settings.database_url else None
    make_private(settings.home)
    closing.callback(make_private, settings.home)
    _delete_indexes(settings.home / INDEX)
    database = await Database.open(url, settings.home)
    closing.push_async_callback(database.close)
    return database


def make_private(home: Path) -> None:
    """Remove other users' rights from the data folder (mode 0700) and from Hachi's files in it (0600),
    whoever created them. Files that belong to another user of the system are skipped."""
    if not (found := list(hachis_files(home))):
        return  # no file of Hachi's is here yet, so the folder may belong to anything
    for path in (str(home), *found):
        with suppress(OSError):
            _tighten(path)


def hachis_files(home: Path) -> Iterator[str]:
    """Yield the paths of Hachi's files in the data folder."""
    if home.is_dir():
        yield from (os.path.join(home, name) for name in os.listdir(home) if name in NAMES)


def _delete_indexes(folder: Path) -> None:
    for lock in folder.glob("*.lock") if folder.is_dir() else ():
        if lock.stem.isdigit():
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)
    with suppress(OSError):  # it does not exist, or other programs' files are in it
        folder.rmdir()


def _tighten(path: str) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX:
        return  # a link leads elsewhere; a sticky folder such as /tmp is everybody's
    wanted = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
    if stat.S_IMODE(found.st_mode) & ~wanted and found.st_uid == os.geteuid():
        os.chmod(path, stat.S_IMODE(found.st_mode) & wanted)
