"""The folder of an embedded index: who holds it, how much room it has, and whether its files can be trusted.

Edge maps its files into memory. On a damaged or truncated file it may not raise an error but end the process,
with a panic or a SIGBUS. So the folder is sealed when the index is closed: `SEAL` lists its files with sizes
and times. A folder without a seal that fits was in use when its process was killed, or was changed since. A
child process then reads all of it first (`memory.index.embedded.probe`).
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from memory.errors import IndexInUse
from memory.index.embedded.compacting import COPIED, COPYING, PARTS, delete

SEAL, LOCK = "seal.json", "lock"
HELD = "WouldBlock"
"""In what Edge says of a folder that another process, of a version without `LOCK`, has open."""
RESERVE = 64_000_000
"""Bytes that indexing leaves free on the disk: for the database, and since writing to a mapped file without
room ends the process."""
PROBE_SECONDS = 300
"""A probe that takes longer is taken for hanging. It reads some 20,000 points a second."""


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def size(folder: Path) -> int:
    """The bytes on disk of the files in the folder. Edge's files are sparse: their lengths say little."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def make(folder: Path) -> None:
    if folder.is_file() or (folder.is_symlink() and not folder.exists()):
        folder.unlink()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class Hold:
    """A lock on the folder, for this process. Raises IndexInUse if another one holds it. It ends with
    `release`, or with the process."""

    _file: int | None = None

    def __init__(self, folder: Path) -> None:
        import portalocker

        self._file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            portalocker.lock(self._file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.LockException as error:
            self.release()
            raise in_use(folder) from error

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    __del__ = release


def in_use(folder: Path) -> IndexInUse:
    return IndexInUse(
        f"the memory index in {folder} is in use by another hachi process; "
        "stop it, or set QDRANT_URL so that several can share one"
    )


def is_empty(folder: Path) -> bool:
    return not any(os.path.lexists(folder / part) for part in (*PARTS, COPIED))


def clear(folder: Path) -> None:
    """Delete the index in the folder, whatever state it is in. Files of others stay."""
    for part in (*PARTS, COPYING, COPIED, SEAL):
        delete(folder / part)


def seal(folder: Path) -> None:
    """Note the state of the files, once the index is closed. Without room for it the next start probes."""
    with suppress(OSError):
        (folder / SEAL).write_text(json.dumps(_state(folder)))


def break_seal(folder: Path) -> bool:
    """Whether the files are as they were sealed. Removes the seal: from now on they change."""
    path = folder / SEAL
    try:
        intact = bool(json.loads(path.read_text()) == _state(folder))
    except (OSError, ValueError, RecursionError):
        intact = False
    delete(path)
    return intact


def _state(folder: Path) -> dict[str, list[int]]:
    files = [path for part in PARTS for path in (folder / part, *(folder / part).rglob("*"))]
    found = {path: path.lstat() for path in files if path.is_file()}
    return {str(path.relative_to(folder)): [s.st_size, s.st_mtime_ns] for path, s in found.items()}


async def damage(folder: Path) -> str | None:
    """Read the whole index in a child process. Returns None if it is sound, or what is wrong with it."""
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "memory.index.embedded.probe", str(folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
    except OSError:
        return None  # no child can be started here: the engine itself has to tell
    try:
        out, _ = await asyncio.wait_for(child.communicate(), PROBE_SECONDS)
    except TimeoutError:
        return "reading it does not end"
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode == 0:
        return None
    if child.returncode and child.returncode < 0:
        return f"reading it ends in {signal.Signals(-child.returncode).name}"
    return out.decode(errors="replace").strip() or "reading it ends the process"
