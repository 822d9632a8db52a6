"""From the bytes of a file to blocks: picks the parser and decodes the text."""

import codecs
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from memory.documents.formats import html, markdown, pdf, plain
from memory.documents.formats.blocks import Block, Parsed, UnreadableDocument
from memory.text import storable

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
HTML = frozenset({".html", ".htm", ".xhtml"})
PDF = frozenset({".pdf"})
TEXT = frozenset({".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".log", ".tex", ""})
EXTENSIONS = MARKDOWN | HTML | PDF | TEXT
"""Extensions that are read inside a folder. A file that is named directly may have any extension."""

_BYTE_ORDER_MARKS = (  # UTF-32 first: its byte order mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = frozenset(map(chr, range(0x20))) - frozenset("\t\n\r\f\v\b\x1b") | {"\x7f"}
_BINARY = "it is binary data; only Markdown, text, HTML and PDF are read"
_SAMPLE = 65_536
"""Bytes or characters that are examined to tell text from binary data."""


def parse(name: str, data: bytes) -> Parsed:
    """Parse a file by its extension and first bytes. A document without a title gets the file's name. Raises
    UnreadableDocument."""
    if not data.strip():
        raise UnreadableDocument("it is empty")
    parsed = _parse(PurePath(name).suffix.lower(), data)
    if not parsed.blocks:
        raise UnreadableDocument("it holds no text")
    title = " ".join(_storable(parsed.title).split())
    return Parsed(title or storable(PurePath(name).stem), tuple(map(_storable_block, parsed.blocks)))


def _parse(extension: str, data: bytes) -> Parsed:
    if extension in PDF or data.startswith(b"%PDF-"):
        return pdf.parse(data)
    if extension in HTML:
        return html.parse(decode(data, html.declared_encoding(data)))
    text = decode(data)
    return markdown.parse(text) if extension in MARKDOWN else plain.parse(text)


def decode(data: bytes, declared: str | None = None) -> str:
    """The text, decoded as UTF-8, or as UTF-16 or UTF-32 if the bytes show it; else in the `declared`
    encoding, or in Windows-1252. Raises UnreadableDocument if the data is not text."""
    unicode = _unicode_encoding(data)
    for encoding in (unicode,) if unicode != "utf-8" else (unicode, declared, "cp1252", "latin-1"):
        with suppress(UnicodeError, LookupError):  # another encoding, or an unknown one
            text = data.decode(encoding or "utf-8")
            break
    else:
        raise UnreadableDocument(f"it begins like {unicode.upper()} but is not; save it as UTF-8")
    sample = text[:_SAMPLE]
    if encoding != "utf-8" and sum(letter in _CONTROL for letter in sample) > 0.01 * len(sample):
        raise UnreadableDocument(_BINARY)
    return _storable(text)


def _unicode_encoding(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[:_SAMPLE]
    if 0 not in sample:
        return "utf-8"
    # Mostly Latin text in UTF-16 has a zero in every other byte.
    zeros, enough = (sample[::2].count(0), sample[1::2].count(0)), 0.3 * len(sample) / 2
    if zeros[0] == 0 and zeros[1] > enough:
        return "utf-16-le"
    if zeros[1] == 0 and zeros[0] > enough:
        return "utf-16-be"
    raise UnreadableDocument(_BINARY)


def _storable(text: str) -> str:
    """The text without the characters that no database stores. A PDF or an HTML entity may contain them."""
    return storable(text)


def _storable_block(block: Block) -> Block:
    return replace(block, text=_storable(block.text), parts=tuple(map(_storable, block.parts)))
