"""Store, list, search and remove documents for the companion to consult.

In the index passages have owner keys of their own (`memory.index.rows`), so they
change neither the word statistics nor the speed of memory search.
"""

import asyncio
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from memory.audience import GLOBAL, Audience
from memory.documents import chunking, files
from memory.documents.files import FileListing, UnreadFile, display_path, is_below
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.parsing import DocumentParser, Parse
from memory.documents.search import DocumentSearch
from memory.documents.store import DocumentStore
from memory.errors import NotFound
from memory.index.embedders import Embedder
from memory.index.indexing import Indexing
from memory.records import Chunk, Document
from memory.sql.engine import Database
from memory.text import is_single_line

MIN_ID = 8
"""The fewest characters of an id that identify a document."""
MAX_NAME = 200
"""The most characters of a document's name."""

Action = Literal["added", "replaced", "unchanged"]


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


@dataclass(frozen=True, slots=True)
class AddedDocument:
    document: Document
    action: Action


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """`done` of `total` files are processed and `path` is next; at the end `path` is empty."""

    path: str
    done: int
    total: int


Progress = Callable[[IngestProgress], None]


class DocumentLibrary:
    def __init__(
        self,
        database: Database,
        indexing: Indexing,
        embedder: Embedder,
        clock: Callable[[], datetime],
    ) -> None:
        self._clock = clock
        self._store = DocumentStore(database)
        self._indexing = indexing
        self._search = DocumentSearch(self._store, indexing, embedder, clock)
        self._parser = DocumentParser()

    async def add(
        self, paths: Sequence[Path], owner: str = GLOBAL, progress: Progress | None = None
    ) -> IngestResult:
        """Store the new and changed files among these files and folders for the readers of `owner`, and
        remove deleted ones. Raises NotFound for a missing path before it reads any file."""
        _require(owner)
        note = progress or (lambda _: None)
        found = await asyncio.to_thread(files.list_files, paths)
        known = await self._store.digests(owner)
        done: dict[str, list[str]] = defaultdict(list)
        unread, chunks = list(found.unread), 0
        async with self._parser.open(owner) as parse:
            for number, file in enumerate(found.files):
                path = display_path(file)
                note(IngestProgress(path, number, len(found.files)))
                try:
                    data = await asyncio.to_thread(files.read, file)
                    action, made = await self._put(parse, owner, path, file.name, data, known.get(path))
                except UnreadableDocument as error:
                    unread.append(UnreadFile(path, str(error)))
                    continue
                done[action].append(path)
                chunks += made
        if deleted := sorted(deleted_paths(found, known)):
            done["removed"] = deleted
            await self._store.remove([d for d in await self._store.owned_by(owner) if d.path in {*deleted}])
        await self._indexing.try_to_catch_up()
        note(IngestProgress("", len(found.files), len(found.files)))
        by_action = {action: tuple(paths) for action, paths in done.items()}
        return IngestResult(**by_action, unread=tuple(unread), chunks=chunks)

    async def add_document(self, name: str, data: bytes, owner: str) -> AddedDocument:
        """Store one document for the readers of `owner`, replacing theirs of the same name. The extension of
        the name selects the parser. Raises UnreadableDocument."""
        _require(owner)
        files.check_size(len(data))
        known = await self._store.digests(owner, name)
        async with self._parser.open(owner) as parse:
            action, _ = await self._put(parse, owner, name, name, data, known.get(name))
        stored = await self._store.owned_by(owner, name)
        if not stored:
            raise NotFound(f"the document {name} has just been removed; add it again")
        await self._indexing.try_to_catch_up()
        return AddedDocument(stored[0], action)

    async def documents(self, audience: Audience) -> list[Document]:
        """List the documents that this audience may read, by path."""
        return await self._store.readable(audience)

    async def remove(self, target: str, owner: str) -> list[Document]:
        """Remove the owner's file at this path, all files below this folder, or the document with this id or
        at least 8 characters of it. Raises NotFound if none or several ids match."""
        removed = _matching(target, await self._store.owned_by(owner))
        if not removed:
            raise NotFound(
                f"no such document here: {display_path(target)}; `hachi knowledge list` shows what there is"
            )
        return await self._remove(removed)

    async def remove_all(self, owner: str) -> list[Document]:
        """Remove all documents that belong to this owner, as when a person is erased."""
        return await self._remove(await self._store.owned_by(owner))

    async def empty(self) -> bool:
        """Return whether the library has no documents of any owner."""
        return await self._store.empty()

    async def search(self, query: str, audience: Audience, limit: int = 5) -> list[Chunk]:
        """Find the chunks that answer the query, best first."""
        if not audience.keys or not query.strip() or limit < 1 or await self.empty():
            return []
        return await self._search(query, audience, limit)

    async def _put(
        self, parse: Parse, owner: str, path: str, name: str, data: bytes, known: str | None
    ) -> tuple[Action, int]:
        """Store a document unless its digest is the `known` one. Returns how many chunks are new."""
        digest = await asyncio.to_thread(_digest, data)
        if digest == known:
            return "unchanged", 0
        title, chunks = await parse(name, data)
        replaced = await self._store.put(owner, path, title, digest, chunks, self._clock())
        return "replaced" if replaced else "added", len(chunks)

    async def _remove(self, removed: list[Document]) -> list[Document]:
        if removed:
            await self._store.remove(removed)
            await self._indexing.try_to_catch_up()
        return removed


def _require(owner: str) -> None:
    if not owner:
        raise ValueError("documents need an owner: user:U, place:P or global")


def deleted_paths(listing: FileListing, stored: Collection[str]) -> list[str]:
    """Return the stored paths in an added folder whose file was deleted, without those that could not be
    read."""
    present = {display_path(file) for file in listing.files}
    unknown = [*listing.closed, *(unread.path for unread in listing.unread)]
    return [
        path
        for path in stored
        if path not in present
        and any(is_below(path, folder) for folder in listing.folders)
        and not any(is_below(path, folder) for folder in unknown)
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(b"%d\n" % chunking.REVISION + data).hexdigest()


def document_name(text: str) -> str:
    """Check that a text is the name of a file, without a folder, and return it. Raises ValueError."""
    name = text.strip()
    whole = is_single_line(name) and name.strip(".") and {"/", "\\"}.isdisjoint(name)
    if not whole or len(name) > MAX_NAME:
        raise ValueError(
            f"name: a document needs the name of a file, such as notes.md: one line of at most {MAX_NAME} "
            "characters, without a folder"
        )
    return name


def _matching(target: str, documents: Sequence[Document]) -> list[Document]:
    target = target.strip()
    path = display_path(os.path.abspath(os.path.expanduser(target)))
    prefix = target.lower()
    by_id = [d for d in documents if len(target) >= MIN_ID and d.id.startswith(prefix)]
    if not target or any(d.id == prefix for d in by_id):
        return by_id
    if by_path := [d for d in documents if is_below(d.path, path) or d.path == target]:
        return by_path
    if len(by_id) > 1:
        raise NotFound(f"{target} begins the ids of {len(by_id)} documents; give more of it")
    return by_id
