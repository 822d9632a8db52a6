"""The data folder, which only its owner may read, and the database that is in it or at a server."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from agent.settings import Settings
from agent.types.home_files import NAMES
from memory.errors import StoreUnavailable
from memory.index.embedded.folder import made_in
from memory.sql.engine import Database

log = logging.getLogger("hachi")

INDEX = "index"


async def open_database(closing: AsyncExitStack, settings: Settings) -> Database:
    """The database of the settings, open until `closing` ends; the data folder is made private before and
    after, for the files that were made meanwhile. Raises StoreUnavailable, also where the database is missing
    and was there."""
    url = settings.database_url.get_secret_value() if settings.database_url else None
    make_private(settings.home)
    closing.callback(make_private, settings.home)
    if url is None and (lost := lost_database(settings.home)):
        raise StoreUnavailable(lost)
    database = await Database.open(url, settings.home)
    closing.push_async_callback(database.close)
    return database


def make_private(home: Path) -> None:
    """Take the rights of others from the data folder (mode 0700) and from Hachi's files in it (0600), also if
    an earlier version or another program made them. Skips what belongs to another user of the system."""
    if not (found := list(hachis_files(home))):
        return  # nothing of Hachi's is here yet, and the folder may be anybody's
    for path in (str(home), *found):
        with suppress(OSError):
            _tighten(path)


def hachis_files(home: Path) -> Iterator[str]:
    """Yield what Hachi has made in the data folder, with its indexes."""
    if home.is_dir():
        yield from (os.path.join(home, name) for name in os.listdir(home) if name in NAMES)
    yield from made_in(home / INDEX)


def lost_database(home: Path) -> str | None:
    """Say that the database is missing where it was, in one line: opening it would begin an empty one."""
    file = home / "hachi.db"
    if (file.exists() and file.stat().st_size) or not any(made_in(home / INDEX)):
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
