"""The documents that the companion searches: everybody's, a place's or one person's."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown
from typing import TYPE_CHECKING

from agent.errors import BadInput
from agent.types.arguments import Limit, Query, User, Where, place_of
from agent.types.checks import checks_arguments
from agent.types.meanings import owner_of_documents
from memory.audience import GLOBAL, Audience
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.library import (
    AddedDocument,
    DocumentLibrary,
    IngestProgress,
    IngestResult,
    document_name,
)
from memory.records import Chunk, Document
from memory.text import storable

if TYPE_CHECKING:
    from agent.wiring.components import Components

LONGEST_PATH = 4_096
"""The most bytes of a path; no system accepts more."""


@checks_arguments
@dataclass(frozen=True)
class DocumentService:
    parts: "Components"

    @property
    def library(self) -> DocumentLibrary:
        """Return the library that stores and searches the documents, for `get_rag_context_for_query`."""
        return self.parts.documents

    async def add_files(
        self,
        paths: Sequence[str | Path] | str | Path,
        *,
        user: User | None = None,
        place: Where = None,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestResult:
        """Add or update files, and all files in folders, as documents of one owner: the user, the place, or
        with neither everybody. `progress` is called before each file and at the end. Raises NotFound for a
        missing path."""
        return await self.parts.documents.add(_paths(paths), owner_of_documents(user, place), progress)

    async def add(
        self, name: str, content: str | bytes, *, user: User | None = None, place: Where = None
    ) -> AddedDocument:
        """Add one document, or replace the owner's document of this name. Raises BadInput if its content
        cannot be read, or its name is not valid."""
        owner = owner_of_documents(user, place)
        if user is not None:
            await self.parts.erasure.finished(user)
        data = storable(content).encode() if isinstance(content, str) else content
        try:
            named = document_name(name)
        except ValueError as error:
            raise BadInput(str(error)) from error
        try:
            return await self.parts.documents.add_document(named, data, owner)
        except UnreadableDocument as error:
            raise BadInput(f"{named}: {error}") from error

    async def remove(
        self, what: str | Path, *, user: User | None = None, place: Where = None
    ) -> list[Document]:
        """Delete documents of one owner (the user, the place, or with neither everybody), also from the
        index. `what` is a path, a folder, an id or at least 8 characters of an id. Returns the deleted
        documents. Raises NotFound if none matches, or several ids do."""
        return await self.parts.documents.remove(_file_name(what), owner_of_documents(user, place))

    async def search(
        self, query: Query, *, user: User | None = None, place: Where = None, limit: Limit = 5
    ) -> list[Chunk]:
        """Return the passages that the user may read there and that answer the query, best first. Without
        user and place, only documents for everybody are searched."""
        return await self.parts.documents.search(query, _readers(user, place), limit)

    async def list(self, *, user: User | None = None, place: Where = None) -> list[Document]:
        """Return the documents that the user may read there, ordered by path. Without user and place: the
        documents for everybody."""
        return await self.parts.documents.documents(_readers(user, place))


def _file_name(value: str | Path) -> str:
    """Return the name as text, with surrogates for bytes that are not valid UTF-8."""
    try:
        if isinstance(value, str | Path) and len(os.fsencode(value)) <= LONGEST_PATH:
            return os.fspath(value)
    except UnicodeEncodeError:
        pass
    raise BadInput(f"{shown(value)} is neither the name of a file nor the id of a document")


def _paths(paths: Sequence[str | Path] | str | Path) -> list[Path]:
    named = [paths] if isinstance(paths, str | Path) else paths
    if not named or not all(_file_name(path).strip() for path in named):
        raise BadInput("name the files and folders to read; one of them is empty, or there is none")
    return [Path(os.path.expanduser(path)) for path in named]


def _readers(user: str | None, place: Where) -> Audience:
    where = place_of(place)
    if user is None and where.private:
        return Audience(frozenset({GLOBAL}))
    return Audience.of("" if user is None else user, where)
