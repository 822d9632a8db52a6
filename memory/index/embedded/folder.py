"""The folders of embedded indexes: ``1``, ``2`` … in one parent, each held by one process.

The file ``1.lock`` beside the folder ``1`` says that Hachi has made it. A folder without one, and what has
another name than `NAMES`, is somebody else's and stays as it is.

Edge maps its files into memory. On a damaged or truncated file it may not raise an error but end the process.
So an index is opened only where `CLEAN` says that it was closed cleanly; the file is removed when it is
opened. Any other index is deleted and filled again.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

CLEAN = "clean.json"
COPYING, COPIED = "copying", "copied"
PARTS = ("edge_config.json", "segments", "temp_segments", "wal")
"""The files and folders that Edge creates in its folder."""
NAMES = (*PARTS, CLEAN, COPYING, COPIED)
"""All that Hachi makes in a folder."""
RESERVE = 64_000_000
"""Bytes that indexing leaves free on the disk: for the database, and since writing to a mapped file without
room ends the process."""


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def size(folder: Path) -> int:
    """The bytes on disk of the files in the folder. Edge's files are sparse: their lengths say little."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


class Hold:
    """A lock on one of the folders, for this process. It ends with `release`, or with the process."""

    def __init__(self, folder: Path, file: int) -> None:
        self.folder = folder
        self._file: int | None = file

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    __del__ = release


def hold_first(parent: Path) -> Hold:
    """Hold the first folder that no other process holds, and nobody else has made."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = (parent / str(number) for number in count(1))
    free = (folder for folder in folders if _lock(folder).exists() or not os.path.lexists(folder))
    return next(held for folder in free if (held := _hold(folder)))


def delete_unheld(parent: Path, *, locks: bool = False) -> None:
    """Delete the folders that no process holds: their indexes follow nothing. With `locks`, once no process
    uses the home, also the files beside them."""
    for folder in _folders(parent):
        if held := _hold(folder):
            _empty(folder)
            held.release()
            if locks:
                _lock(folder).unlink(missing_ok=True)
    if locks:
        with suppress(OSError):  # somebody else's files are there
            parent.rmdir()


def made_in(parent: Path) -> Iterator[str]:
    """Yield what Hachi has made there: the parent, the folders, and all that is in them."""
    for number, folder in enumerate(_folders(parent)):
        if not number:
            yield str(parent)
        yield from (str(_lock(folder)), str(folder))
        for part in (folder / name for name in NAMES if os.path.lexists(folder / name)):
            yield str(part)
            for inside, folders, names in os.walk(part):
                yield from (os.path.join(inside, name) for name in (*folders, *names))


def _folders(parent: Path) -> Iterator[Path]:
    locks = (lock for lock in parent.glob("*.lock") if lock.stem.isdigit() and lock.is_file())
    return (lock.with_suffix("") for lock in locks)


def _lock(folder: Path) -> Path:
    return folder.with_suffix(".lock")


def _hold(folder: Path) -> Hold | None:
    import portalocker

    # Beside the folder: a file in it would be deleted with it while somebody else begins to hold it.
    file = os.open(_lock(folder), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.LockException:
        os.close(file)
        return None
    return Hold(folder, file)


def close_cleanly(folder: Path, state: dict[str, Any]) -> None:
    """Note in what state the index was closed. Without room for that it is filled again."""
    with suppress(OSError):
        (folder / CLEAN).write_text(json.dumps(state))


def open_cleanly(folder: Path) -> dict[str, Any]:
    """The state in which the index was closed, once; empty if it was not."""
    try:
        state = json.loads((folder / CLEAN).read_text())
    except (OSError, ValueError, RecursionError):
        state = None
    delete(folder / CLEAN)
    return state if isinstance(state, dict) else {}


def clear(folder: Path) -> None:
    """Make the folder, without anything of Hachi's in it."""
    _empty(folder)
    folder.mkdir(mode=0o700, exist_ok=True)


def _empty(folder: Path) -> None:
    for name in NAMES:
        delete(folder / name)
    with suppress(OSError):  # it is not there, or somebody else's files are
        folder.rmdir()


def settle(folder: Path) -> None:
    """Put a complete copy in the place of the index in `folder`, which must be closed."""
    copied = folder / COPIED
    for part in PARTS:
        delete(folder / part)
        if (copied / part).exists():
            (copied / part).rename(folder / part)
    delete(copied)


def delete(part: Path) -> None:
    """Delete a file, a folder with all that is in it, or a link; nothing if it is not there."""
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)
