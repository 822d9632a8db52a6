"""Documents in a folder of the test's own, and a library on both databases with the real index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memory.audience import GLOBAL, Audience, Place
from memory.documents.library import DocumentLibrary, IngestResult


@dataclass
class Library:
    """DocumentLibrary as the companion wires it, on a stack whose index and embedder can be away."""

    stack: Any
    folder: Path

    def __post_init__(self) -> None:
        self.knowledge = self.opened()

    def opened(self) -> DocumentLibrary:
        """As another process would open it."""
        stack = self.stack
        return DocumentLibrary(stack.database, stack.indexing, stack.embedder, stack.clock)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    async def add(self, *paths: Path, owner: str = GLOBAL) -> IngestResult:
        """These, or the whole folder."""
        return await self.knowledge.add(paths or [self.folder], owner)

    async def found(self, query: str, user: str = "anna", place: str | None = None) -> list[str]:
        """The texts that a search brings back there."""
        audience = Audience.of(user, Place.parse(place))
        return [chunk.text for chunk in await self.knowledge.search(query, audience, 10)]

    async def names(self, user: str = "anna", place: str | None = None) -> list[str]:
        """The names of the documents that may be read there."""
        documents = await self.knowledge.documents(Audience.of(user, Place.parse(place)))
        return [Path(document.path).name for document in documents]

    def here(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def library(stack: Any, tmp_path: Path) -> Library:
    folder = tmp_path / "papers"
    folder.mkdir()
    return Library(stack, folder)


def pdf(*pages: str, password: str | None = None, title: str | None = None) -> bytes:
    """A PDF with a line of text, or several, on each page."""
    import io

    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(key): NameObject(value) for key, value in names.items()})
    for text in pages:
        page = writer.add_blank_page(width=612, height=792)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n"))
        drawn = DecodedStreamObject()
        drawn.set_data(f"BT /F1 12 Tf 72 700 Td {lines}ET".encode())
        page[NameObject("/Contents")] = drawn
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    return pdf
