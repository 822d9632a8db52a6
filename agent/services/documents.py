"""The documents that the companion searches: everybody's, a place's or one person's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import BadInput
from agent.services.arguments import audience_of, owner_of_documents, paths_of, user_named
from agent.services.erasure import ErasureService
from memory.audience import Place
from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.ingest import AddedDocument, IngestProgress, IngestResult
from memory.documents.library import DocumentLibrary, document_name
from memory.records import Chunk, Document
from memory.text import storable


@dataclass(frozen=True)
class DocumentService:
    library: DocumentLibrary
    erasure: ErasureService

    async def add_files(
        self,
        paths: Sequence[str | Path],
        *,
        user: str | None = None,
        place: Place | str | None = None,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestResult:
        """Add or update the files at these paths, and all files in these folders, as the documents of one
        owner: the user, the place, or with neither everybody. `progress` is called before each file and
        at the end. Raises NotFound for a missing path."""
        return await self.library.add(paths_of(paths), owner_of_documents(user, place), progress)

    async def add(
        self,
        name: str,
        content: str | bytes,
        *,
        user: str | None = None,
        place: Place | str | None = None,
    ) -> AddedDocument:
        """Add one document, or replace the owner's document of this name. Raises BadInput if it cannot be
        read, or if its name cannot be a name."""
        owner = owner_of_documents(user, place)
        if user is not None:
            await self.erasure.finished(user_named(user))
        data = storable(content).encode() if isinstance(content, str) else content
        try:
            named = document_name(name)
        except ValueError as error:
            raise BadInput(str(error)) from error
        try:
            return await self.library.add_document(named, data, owner)
        except UnreadableDocument as error:
            raise BadInput(f"{named}: {error}") from error

    async def remove(
        self, what: str, *, user: str | None = None, place: Place | str | None = None
    ) -> list[Document]:
        """Delete documents of one owner (the user, the place, or with neither everybody), with their text and
        their entries in the index. `what` is a path, a folder, an id or at least 8 characters of an id.
        Returns the deleted documents. Raises NotFound if none matches, or several ids do."""
        return await self.library.remove(what, owner_of_documents(user, place))

    async def search(
        self, query: str, *, user: str | None, place: Place | str | None = None, limit: int = 5
    ) -> list[Chunk]:
        """Return the passages that answer the query and that the user may read there, best first; for nobody
        none."""
        if user is None:
            return []
        return await self.library.search(query, audience_of(user, place), limit)

    async def list(self, *, user: str, place: Place | str | None = None) -> list[Document]:
        """Return the documents that the user may read there, sorted by path."""
        return await self.library.documents(audience_of(user, place))
