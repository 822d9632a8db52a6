"""From the bytes of a file to its blocks: which format it has, and how its letters are written."""

import codecs
from dataclasses import replace
from pathlib import PurePath

from memory.documents.formats import html, markdown, pdf, plain
from memory.documents.formats.blocks import Block, Parsed, UnreadableDocument
from memory.index.bm25 import sound

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx"})
HTML = frozenset({".html", ".htm", ".xhtml"})
PDF = frozenset({".pdf"})
TEXT = frozenset({".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".log", ".tex", ""})
READ = MARKDOWN | HTML | PDF | TEXT
"""Endings of what is read inside a folder. A file that is named itself is read whatever its ending."""

_MARKS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = frozenset(range(0x20)) - frozenset(b"\t\n\r\f\v\b\x1b") | {0x7F}
_BINARY = "it is no text but binary data; Markdown, text, HTML and PDF are read"
_SAMPLE = 65_536
"""Bytes that are looked at to tell text from what is none."""


def parse(name: str, data: bytes) -> Parsed:
    """The document in `data`, by the ending of its file's name and by what it begins with; its title is the
    file's name where it bears none. Raises `UnreadableDocument`."""
    if not data.strip():
        raise UnreadableDocument("it is empty")
    parsed = _parse(PurePath(name).suffix.lower(), data)
    if not parsed.blocks:
        raise UnreadableDocument("it holds no text")
    title = " ".join(_storable(parsed.title).split())
    return Parsed(title or sound(PurePath(name).stem), tuple(map(_sound, parsed.blocks)))


def _parse(ending: str, data: bytes) -> Parsed:
    if ending in PDF or data.startswith(b"%PDF-"):
        return pdf.parse(data)
    if ending in HTML:
        return html.parse(decoded(data, html.encoding_of(data)))
    text = decoded(data)
    return markdown.parse(text) if ending in MARKDOWN else plain.parse(text)


def decoded(data: bytes, named: str | None = None) -> str:
    """Text in UTF-8, in UTF-16 or UTF-32 with a mark at its beginning, in UTF-16 without one; else as it is
    `named`, or in Windows-1252, which holds Latin-1. Raises `UnreadableDocument` for what is no text."""
    encoding = _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise UnreadableDocument(
                f"it begins like {encoding.upper()} but is not; save it as UTF-8"
            ) from None
        text = _in_one_byte(data, named)
    if encoding.startswith("utf-16-") and any(ord(letter) in _CONTROL for letter in text[:_SAMPLE]):
        raise UnreadableDocument(_BINARY)  # every other byte was a zero by chance
    return _storable(text)


def _storable(text: str) -> str:
    """Without what no database takes, which may also come out of a PDF or an entity of HTML."""
    return sound(text).replace("\x00", "")


def _sound(block: Block) -> Block:
    return replace(block, text=_storable(block.text), parts=tuple(map(_storable, block.parts)))


def _encoding(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[:_SAMPLE]
    if 0 in sample:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if odd > 0.3 * len(sample) / 2 and even == 0:
            return "utf-16-le"
        if even > 0.3 * len(sample) / 2 and odd == 0:
            return "utf-16-be"
        raise UnreadableDocument(_BINARY)
    return "utf-8"


def _in_one_byte(data: bytes, named: str | None) -> str:
    sample = data[:_SAMPLE]
    if sum(byte in _CONTROL for byte in sample) > 0.01 * len(sample):
        raise UnreadableDocument(_BINARY)
    for encoding in filter(None, (named, "cp1252")):
        try:
            return data.decode(encoding)
        except (UnicodeError, LookupError):  # not so after all, or a name nobody knows
            continue
    return data.decode("latin-1")
