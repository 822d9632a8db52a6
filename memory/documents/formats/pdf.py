"""PDF to blocks: the text of each page under a heading with the page's number."""

import io
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memory.documents.formats.blocks import Block, Parsed, UnreadableDocument
from memory.documents.formats.plain_text import paragraphs

if TYPE_CHECKING:
    from pypdf import PdfReader

_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[^\W\d_A-Z])")
"""A hyphen at the end of a line before a small letter at the start of the next."""


def parse(data: bytes) -> Parsed:
    """Read the text of all pages. Raises UnreadableDocument if broken, encrypted or without text."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # pypdf logs a warning for each repaired defect
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument("it is encrypted; save it without a password and add it again")
        blocks = tuple(_pages(reader))
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except UnreadableDocument:
        raise
    except DependencyError as error:
        raise UnreadableDocument(f"decrypting it needs more software: {error}") from error
    except Exception as error:  # a broken file can make the parser raise anything
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UnreadableDocument(f"it is a broken PDF ({reason}); save and add it again") from error
    if not blocks:
        raise UnreadableDocument("it holds no text, perhaps only pictures; run OCR on it first")
    return Parsed(title, blocks)


def _pages(reader: "PdfReader") -> Iterator[Block]:
    for number, page in enumerate(reader.pages, start=1):
        texts = list(paragraphs(_HYPHENATED.sub("", page.extract_text())))
        if texts:
            yield Block("heading", f"page {number}", level=1)
            yield from (Block("text", text) for text in texts)
