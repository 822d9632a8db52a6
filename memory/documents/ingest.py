"""Reading documents into the record: what is new, changed, the same, gone, and what cannot be read."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from memory.documents import chunking, files
from memory.documents.chunking import ChunkText
from memory.documents.files import Found, UnreadFile, below, shown
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.parse import parse
from memory.documents.store import DocumentStore
from memory.records import Document


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What adding did, by path."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Documents of an added folder whose file is gone."""
    unread: tuple[UnreadFile, ...] = ()
    """What was added earlier stays as it was."""
    chunks: int = 0
    """How many were made of what was added and replaced."""


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """A document that was handed over, as it is kept now."""

    document: Document
    action: Literal["added", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far adding has come: `done` of `total` files, the next of which is `path`; empty at the end."""

    path: str
    done: int
    total: int


Progress = Callable[[IngestProgress], None]


@dataclass(frozen=True, slots=True)
class Cut:
    """A file as it is to be kept. Without pieces it is the same as before."""

    digest: str
    title: str = ""
    pieces: tuple[ChunkText, ...] = ()


class Ingest:
    """One run of adding. `find` and reading are done in threads; what is kept is kept file by file."""

    def __init__(self, documents: DocumentStore, owner: str, clock: Callable[[], datetime]) -> None:
        self._documents = documents
        self._owner = owner
        self._clock = clock
        self._done: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "removed": []}
        self._unread: list[UnreadFile] = []
        self._chunks = 0

    @property
    def result(self) -> IngestResult:
        done = {name: tuple(paths) for name, paths in self._done.items()}
        return IngestResult(**done, unread=tuple(self._unread), chunks=self._chunks)

    async def run(self, paths: Sequence[Path], progress: Progress | None) -> AsyncIterator[int]:
        """Yields how many chunks each file made, as soon as they are in the record."""
        found = await asyncio.to_thread(files.find, paths)
        self._unread += found.unread
        known = await self._documents.digests(self._owner)
        for done, file in enumerate(found.files):
            if progress:
                progress(IngestProgress(shown(file), done, len(found.files)))
            yield await self._take(file, known)
        await self._remove_gone(found, known)
        if progress:
            progress(IngestProgress("", len(found.files), len(found.files)))

    async def _take(self, file: Path, known: dict[str, str]) -> int:
        path = shown(file)
        try:
            cut = await asyncio.to_thread(_cut_file, file, known.get(path))
        except UnreadableDocument as error:
            self._unread.append(UnreadFile(path, str(error)))
            return 0
        if not cut.pieces:
            self._done["unchanged"].append(path)
            return 0
        replaced = await self._documents.put(
            self._owner, path, cut.title, cut.digest, cut.pieces, self._clock()
        )
        self._done["replaced" if replaced else "added"].append(path)
        self._chunks += len(cut.pieces)
        return len(cut.pieces)

    async def _remove_gone(self, found: Found, known: Collection[str]) -> None:
        gone = set(gone_from(found, known))
        if gone:
            of_the_owner = await self._documents.of(self._owner)
            await self._documents.take_away([d for d in of_the_owner if d.path in gone], self._clock())
            self._done["removed"] += sorted(gone)


def gone_from(found: Found, known: Collection[str]) -> list[str]:
    """Those of the known documents whose file was in an added folder and is no longer. What could not be read
    or looked into this time is not gone."""
    there = {shown(file) for file in found.files}
    closed = [*found.closed, *(unread.path for unread in found.unread)]
    return [
        path
        for path in known
        if path not in there
        and any(below(path, folder) for folder in found.folders)
        and not any(below(path, folder) for folder in closed)
    ]


async def take(documents: DocumentStore, owner: str, name: str, data: bytes, now: datetime) -> AddedDocument:
    """Keep one document that is handed over under this name. Raises `UnreadableDocument`."""
    files.check_size(len(data))
    cut = await asyncio.to_thread(_cut, name, data, await documents.digest(owner, name))
    action: Literal["added", "replaced", "unchanged"] = "unchanged"
    if cut.pieces:
        was_there = await documents.put(owner, name, cut.title, cut.digest, cut.pieces, now)
        action = "replaced" if was_there else "added"
    return AddedDocument(await documents.named(owner, name), action)


def _cut_file(file: Path, known: str | None) -> Cut:
    """In a thread. Raises `UnreadableDocument`."""
    return _cut(file.name, files.read(file), known)


def _cut(name: str, data: bytes, known: str | None) -> Cut:
    """Parse and cut, in a thread. Raises `UnreadableDocument`."""
    digest = hashlib.sha256(b"%d\n" % chunking.REVISION + data).hexdigest()
    if digest == known:
        return Cut(digest)
    try:
        parsed = parse(name, data)
    except UnreadableDocument:
        raise
    except Exception as error:  # one odd file must not keep the others from being read
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UnreadableDocument(f"it cannot be made sense of ({reason})") from error
    pieces = tuple(chunking.cut(parsed.blocks))
    if not pieces:
        raise UnreadableDocument("it holds headings and no text")
    return Cut(digest, parsed.title, pieces)
