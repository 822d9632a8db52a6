"""From the bytes of a file to blocks: picks the parser and decodes the text."""

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from memory.documents.formats import html, markdown, pdf, plain_text
from memory.documents.formats.blocks import Parsed, UnreadableDocument
from memory.text import storable

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
HTML = frozenset({".html", ".htm", ".xhtml"})
PDF = frozenset({".pdf"})
TEXT = frozenset({".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".log", ".tex", ""})
EXTENSIONS = MARKDOWN | HTML | PDF | TEXT
"""Extensions that are read inside a folder. A file that is named directly may have any extension."""

_CONTROL = frozenset(map(chr, range(0x20))) - frozenset("\t\n\r\f\v\b\x1b") | {"\x7f"}
_WESTERN = ("cp1252", "latin-1")
_SAMPLE = 65_536
"""Bytes or characters that are examined to tell text from binary data."""


def parse(name: str, data: bytes) -> Parsed:
    """Parse a file by its extension and first bytes; without a title it gets the file's name. Raises
    UnreadableDocument."""
    if not data.strip():
        raise UnreadableDocument("it is empty")
    parsed = _parse(PurePath(name).suffix.lower(), data)
    if not parsed.blocks:
        raise UnreadableDocument("it holds no text")
    title = " ".join(storable(parsed.title).split())
    # a PDF or an HTML entity may contain what no database stores
    blocks = (replace(b, text=storable(b.text), parts=tuple(map(storable, b.parts))) for b in parsed.blocks)
    return Parsed(title or storable(PurePath(name).stem), tuple(blocks))


def _parse(extension: str, data: bytes) -> Parsed:
    if extension in PDF or data.startswith(b"%PDF-"):
        return pdf.parse(data)
    if extension in HTML:
        return html.parse(decode(data, html.declared_encoding(data)))
    text = decode(data)
    return markdown.parse(text) if extension in MARKDOWN else plain_text.parse(text)


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a text by its byte order mark, else as UTF-8, as `declared`, or as Windows-1252. Raises
    UnreadableDocument for binary data, and where most would be accented letters: then the encoding is
    another."""
    from bs4.dammit import EncodingDetector

    data, marked = EncodingDetector.strip_byte_order_mark(data)
    for encoding in (marked,) if marked else ("utf-8", declared, *_WESTERN):
        with suppress(UnicodeError, LookupError):  # another encoding, or an unknown one
            text = data.decode(encoding or "utf-8")
            break
    else:
        raise UnreadableDocument(f"it begins like {str(marked).upper()} but is not; save it as UTF-8")
    sample = text[:_SAMPLE]
    control = sum(letter in _CONTROL for letter in sample)
    if "\0" in sample or (encoding != "utf-8" and control > 0.01 * len(sample)):
        raise UnreadableDocument("it is binary data; only Markdown, text, HTML and PDF are read")
    if encoding in _WESTERN and encoding != declared and sum(map(str.isascii, sample)) < 0.5 * len(sample):
        raise UnreadableDocument("it is in an encoding that cannot be told; save it as UTF-8")
    return storable(text)
