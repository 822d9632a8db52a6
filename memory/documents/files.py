"""List the documents in folders, and read whole files, also behind links and pipes."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.parse import EXTENSIONS
from memory.errors import NotFound

MAX_BYTES = 32 * 1024 * 1024
"""The most bytes of a file. Parsing holds several copies of the file in memory."""
SKIPPED = frozenset({"node_modules", "__pycache__", "__pypackages__", "venv", "site-packages"})
"""Folders of third-party files, skipped in an added folder like all names that begin with a dot."""


@dataclass(frozen=True, slots=True)
class UnreadFile:
    path: str
    reason: str
    """One line: why the file cannot be read and what to do about it."""


@dataclass(slots=True)
class FileListing:
    files: list[Path] = field(default_factory=list)
    unread: list[UnreadFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """The display paths of the added folders. All their files are listed, except below `closed`."""
    closed: list[str] = field(default_factory=list)
    """Subfolders that could not be listed."""


def display_path(path: str | os.PathLike[str]) -> str:
    """Return the path as text that can be stored: bytes that are not valid text are escaped."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode("utf-8", "backslashreplace")
    return text


def is_below(path: str, folder: str) -> bool:
    """Return whether the path is the folder itself or inside it; both as `display_path` returns them."""
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def list_files(paths: Sequence[Path]) -> FileListing:
    """List the documents under these paths, without duplicates. Raises NotFound if a path is missing."""
    listing = FileListing()
    starts = [Path(os.path.abspath(path)) for path in paths]
    for start in starts:
        if not os.path.lexists(start):
            raise NotFound(
                f"there is no file or folder {display_path(start)}; to remove what was added from there, use "
                "`hachi knowledge remove`"
            )
    files = (
        file for start in starts for file in (_walk(start, listing) if os.path.isdir(start) else [start])
    )
    listing.files = list(dict.fromkeys(files))
    return listing


def _walk(start: Path, listing: FileListing) -> Iterator[Path]:
    def closed(error: OSError) -> None:
        folder = display_path(error.filename)
        listing.closed.append(folder)
        listing.unread.append(UnreadFile(folder, _reason(error)))

    listing.folders.append(display_path(start))
    for folder, subfolders, names in os.walk(start, onerror=closed):
        subfolders[:] = sorted(filter(_is_ours, subfolders))
        links = [name for name in subfolders if os.path.islink(os.path.join(folder, name))]
        for name in sorted(filter(_is_ours, names + links)):
            path = Path(folder, name)
            if (reason := _why_skipped(path, start)) is None:
                yield path
            elif reason:
                listing.unread.append(UnreadFile(display_path(path), reason))


def _is_ours(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED


def _why_skipped(path: Path, start: Path) -> str | None:
    """Return why a file in a folder is skipped; None if it is read, empty if the reason is not reported."""
    try:
        mode = path.stat().st_mode
        kind = "folder" if stat.S_ISDIR(mode) else "file"
        if path.is_symlink() and not is_below(os.path.realpath(path), os.path.realpath(start)):
            return f"it is a link to a {kind} elsewhere; add that {kind} itself"
        if kind == "folder":  # the walk reads it in its own place
            return ""
        if not stat.S_ISREG(mode):
            return "it is not a file"
    except OSError as error:
        return _reason(error)
    extension = path.suffix.lower()
    return None if extension in EXTENSIONS else f"{extension} files in a folder are not read"


def read(path: Path) -> bytes:
    """Return the whole file. Raises UnreadableDocument, also if the file changes during the read."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise UnreadableDocument("it is not a file")
            check_size(before.st_size)
            data = file.read(MAX_BYTES + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise UnreadableDocument(_reason(error)) from error
    if before.st_mtime_ns != after.st_mtime_ns or not before.st_size == after.st_size == len(data):
        raise UnreadableDocument("it changes while it is read; add it again once it is written")
    return data


def check_size(length: int) -> None:
    """Raise UnreadableDocument for more than `MAX_BYTES`."""
    if length > MAX_BYTES:
        raise UnreadableDocument(
            f"it has {length / 2**20:.0f} MB, and at most {MAX_BYTES // 2**20} MB are read; split it"
        )


def _reason(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"
