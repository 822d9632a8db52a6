"""The names of Hachi's files in the data folder, and the settings file.

Files with other names belong to somebody else: they are neither changed nor deleted. Settings are read only
from the file that `HACHI_ENV_FILE` names or, if it is unset, from `.env` in the data folder.
"""

import os
import stat
from pathlib import Path

from dotenv import dotenv_values

from agent.errors import SettingsError

LOG, DECISIONS, TYPED = "hachi.log", "decisions.jsonl", "chat_history"
OLDER_FILES = 3
"""How many full files of the log, and of the decisions, are kept besides the current one."""
DATABASES = ("hachi.db", "traces.db")
"""Databases of the data folder. Earlier versions could store traces in the second one."""
_BESIDE = ("", "-wal", "-shm", "-journal", ".restoring")
_COPIES = (".before-conversion", ".before-conversion.new", ".second-edition")


def rotated(name: str) -> tuple[str, ...]:
    """Return the names of the current file and of the older ones."""
    return (name, *(f"{name}.{number}" for number in range(1, OLDER_FILES + 1)))


NAMES = frozenset(
    [
        *(f"{database}{ending}" for database in DATABASES for ending in (*_BESIDE, *_COPIES)),
        *rotated(LOG),
        *rotated(DECISIONS),
        TYPED,
    ]
)
"""The names of all files that Hachi creates in the data folder."""


def read_settings_file(path: Path, *, required: bool) -> dict[str, str]:
    """Return the variables set in the file. Raises SettingsError if it cannot be read, or if other users may
    write it, because it decides where keys and facts are sent."""
    try:
        with path.open(encoding="utf-8") as file:
            require_ours(path, os.fstat(file.fileno()))
            return {name: value for name, value in dotenv_values(stream=file).items() if value}
    except (OSError, UnicodeError) as error:
        if not required and isinstance(error, FileNotFoundError | NotADirectoryError):
            return {}
        why = getattr(error, "strerror", error)
        raise SettingsError(f"the settings file {path} cannot be read ({why})") from error


def require_ours(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        return  # a pipe of another program, or /dev/null for none
    if status.st_uid not in (0, os.geteuid()):
        raise SettingsError(f"{path} belongs to another user; settings are read from a file of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingsError(f"others may write it, so {path} is not read; run: chmod 600 {path}")
