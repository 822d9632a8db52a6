"""The files to read: found in folders, and read whole, whatever is odd about them."""

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.parse import READ
from memory.errors import NotFound

LARGEST = 32 * 1024 * 1024
"""Bytes of a file. One is held in memory whole, and several times over while it is cut."""
SKIPPED = frozenset({"node_modules", "__pycache__", "__pypackages__", "venv", "site-packages"})
"""Folders of what others wrote, skipped inside a folder like whatever begins with a dot."""
TRIES = 3
"""How often a file is read that changes meanwhile …"""
PAUSE = 0.05
"""… and seconds before it is read again."""


@dataclass(frozen=True, slots=True)
class UnreadFile:
    path: str
    reason: str
    """One line that says why, and what can be done about it."""


@dataclass(slots=True)
class Found:
    """What lies under the paths that were named."""

    files: list[Path] = field(default_factory=list)
    unread: list[UnreadFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """Folders whose content is now known as a whole, as `shown` has them; `closed` lie inside these."""
    closed: list[str] = field(default_factory=list)
    """What could not be looked into: nothing is known of what lies below."""


def shown(path: str | os.PathLike[str]) -> str:
    """A path as text that can be written down: bytes in a name that are no text are spelled out."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode("utf-8", "backslashreplace")
    return text


def below(path: str, folder: str) -> bool:
    """Whether it is the folder itself or lies in it; both as `shown`."""
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def find(paths: Sequence[Path]) -> Found:
    """All documents under these, in order and each once. Raises NotFound where one of them is not there."""
    found = Found()
    starts = [Path(os.path.abspath(path)) for path in paths]
    for start in starts:
        if not os.path.lexists(start):
            if hidden := next((folder for folder in start.parents if not os.access(folder, os.X_OK)), None):
                raise NotFound(f"{shown(start)} cannot be reached: {shown(hidden)} may not be entered")
            raise NotFound(
                f"there is no file or folder {shown(start)}; what was added from there goes with "
                "`hachi knowledge remove`"
            )
    seen: set[Path] = set()
    for start in starts:
        files = _walk(start, found) if _is_folder(start) else iter([start])
        for file in files:
            if file not in seen:
                seen.add(file)
                found.files.append(file)
    return found


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _walk(start: Path, found: Found) -> Iterator[Path]:
    found.folders.append(shown(start))
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            found.closed.append(shown(folder))
            found.unread.append(UnreadFile(shown(folder), _reason(error)))
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(folder / entry.name)
            elif (reason := _not_wanted(entry, start)) is None:
                yield folder / entry.name
            elif reason:
                found.unread.append(UnreadFile(shown(entry.path), reason))


def _not_wanted(entry: "os.DirEntry[str]", start: Path) -> str | None:
    """Why a file in a folder is left out; empty where nobody needs to be told, None where it is read."""
    try:
        if entry.is_symlink() and entry.is_dir():
            inside = below(os.path.realpath(entry.path), os.path.realpath(start))
            return "" if inside else "it is a link to a folder elsewhere; add that folder itself"
        if not stat.S_ISREG(entry.stat().st_mode):
            return "it is no file"
    except OSError as error:
        return _reason(error)
    ending = Path(entry.name).suffix.lower()
    return None if ending in READ else f"{ending} is no kind of document that is read from a folder"


def read(path: Path) -> bytes:
    """The whole file, as it was at one moment. Raises `UnreadableDocument`."""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        try:
            with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
                before = os.fstat(file.fileno())
                if not stat.S_ISREG(before.st_mode):
                    raise UnreadableDocument("it is no file")
                check_size(before.st_size)
                data = file.read(LARGEST + 1)
                after = os.fstat(file.fileno())
        except OSError as error:
            raise UnreadableDocument(_reason(error)) from error
        if before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data):
            return data
    raise UnreadableDocument("it changes while it is read; add it again once it is written")


def check_size(length: int) -> None:
    """Raises `UnreadableDocument` for so many bytes where they are too many."""
    if length > LARGEST:
        raise UnreadableDocument(
            f"it has {length / 2**20:.0f} MB, and at most {LARGEST // 2**20} are read at "
            "once, for they are held in memory; split it"
        )


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a loop of symbolic links"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "it may not be read; give this user the right to read it"
    if error.errno == errno.ENOENT:
        return "it is gone, or a link to nothing"
    return f"it cannot be read ({error.strerror or error})"
