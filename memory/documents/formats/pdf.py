"""PDF to blocks: the text of each page under a heading that says which page it is."""

import io
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memory.documents.formats.blocks import Block, Parsed, UnreadableDocument
from memory.documents.formats.plain import paragraphs

if TYPE_CHECKING:
    from pypdf import PdfReader

_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])")
"""A hyphen at the end of a line, and a small letter at the beginning of the next."""


def parse(data: bytes) -> Parsed:
    """Raises `UnreadableDocument` for one that is broken, encrypted or holds no text."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # of every oddity in a file it could repair
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument("it is encrypted; save it without a password and add it again")
        blocks = tuple(_pages(reader))
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except UnreadableDocument:
        raise
    except DependencyError as error:
        raise UnreadableDocument(f"it is encrypted in a way that needs more software: {error}") from error
    except Exception as error:  # whatever a broken file makes the parser stumble over
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UnreadableDocument(f"it is a broken PDF ({reason}); save it anew and add it again") from error
    if not blocks:
        raise UnreadableDocument(
            "it holds no text, only pictures perhaps; let a program for OCR read it first"
        )
    return Parsed(title, blocks)


def _pages(reader: "PdfReader") -> Iterator[Block]:
    for number, page in enumerate(reader.pages, start=1):
        found = list(paragraphs(_BROKEN_WORD.sub("", page.extract_text())))
        if found:
            yield Block("heading", f"page {number}", level=1)
        for text in found:
            yield Block("text", text)
