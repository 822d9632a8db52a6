"""Adding documents: new and changed files are stored, deleted ones removed, unreadable ones reported."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from memory.documents import chunking, files
from memory.documents.files import FoundFiles, UnreadFile, display_path, is_below
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.parsing import DocumentParser, Parse
from memory.documents.store import DocumentStore
from memory.errors import NotFound
from memory.index.indexing import Indexing
from memory.records import Document


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of adding files, by path."""

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Documents that were removed because an added folder no longer has their file."""
    unread: tuple[UnreadFile, ...] = ()
    """Files that could not be read. An earlier version of such a file stays stored."""
    chunks: int = 0
    """The number of chunks in the added and replaced documents."""


Action = Literal["added", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """The stored result of adding a single document."""

    document: Document
    action: Action


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """`done` of `total` files are processed and `path` is next; at the end `path` is empty."""

    path: str
    done: int
    total: int


Progress = Callable[[IngestProgress], None]


@dataclass(frozen=True)
class Ingest:
    """Adds documents for one owner. Files are read in threads, parsed elsewhere, and stored one by one."""

    store: DocumentStore
    sync: Indexing
    parser: DocumentParser
    owner: str
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        if not self.owner:
            raise ValueError("documents need an owner: user:U, place:P or global")

    async def add_files(self, paths: Sequence[Path], progress: Progress | None) -> IngestResult:
        """Add these files and the documents in these folders. Raises NotFound first if a path is missing."""
        found = await asyncio.to_thread(files.find, paths)
        known = await self.store.digests(self.owner)
        done: dict[str, list[str]] = defaultdict(list)
        unread, total = list(found.unread), 0
        async with self.parser.open(self.owner) as parse:
            for number, file in enumerate(found.files):
                path = display_path(file)
                if progress:
                    progress(IngestProgress(path, number, len(found.files)))
                try:
                    data = await asyncio.to_thread(files.read, file)
                    action, made = await self._add(parse, path, file.name, data, known.get(path))
                except UnreadableDocument as error:
                    unread.append(UnreadFile(path, str(error)))
                    continue
                done[action].append(path)
                total += made
        done["removed"] = await self._remove_deleted(found, known)
        await self.sync.try_to_catch_up()
        if progress:
            progress(IngestProgress("", len(found.files), len(found.files)))
        by_action = {action: tuple(paths) for action, paths in done.items()}
        return IngestResult(**by_action, unread=tuple(unread), chunks=total)

    async def add_one(self, name: str, data: bytes) -> AddedDocument:
        """Store one document under this name. Raises UnreadableDocument."""
        files.check_size(len(data))
        known = await self.store.digests(self.owner, name)
        async with self.parser.open(self.owner) as parse:
            action, _ = await self._add(parse, name, name, data, known.get(name))
        stored = await self.store.owned_by(self.owner, name)
        if not stored:
            raise NotFound(f"the document {name} has just been removed; add it again")
        await self.sync.try_to_catch_up()
        return AddedDocument(stored[0], action)

    async def _add(
        self, parse: Parse, path: str, name: str, data: bytes, known: str | None
    ) -> tuple[Action, int]:
        """Returns the action and the number of new chunks; 0 if the digest equals the `known` one."""
        digest = await asyncio.to_thread(_digest, data)
        if digest == known:
            return "unchanged", 0
        title, chunks = await parse(name, data)
        replaced = await self.store.put(self.owner, path, title, digest, chunks, self.clock())
        return "replaced" if replaced else "added", len(chunks)

    async def _remove_deleted(self, found: FoundFiles, known: Collection[str]) -> list[str]:
        deleted = sorted(deleted_paths(found, known))
        if deleted:
            owned = await self.store.owned_by(self.owner)
            await self.store.remove([d for d in owned if d.path in set(deleted)])
        return deleted


def deleted_paths(found: FoundFiles, known: Collection[str]) -> list[str]:
    """The known paths inside an added folder whose file no longer exists. A path that could not be read this
    time does not count as deleted."""
    present = {display_path(file) for file in found.files}
    unknown = [*found.closed, *(unread.path for unread in found.unread)]
    return [
        path
        for path in known
        if path not in present
        and any(is_below(path, folder) for folder in found.folders)
        and not any(is_below(path, folder) for folder in unknown)
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(b"%d\n" % chunking.REVISION + data).hexdigest()
