"""Plain text to blocks: paragraphs between empty lines, and underlined headings."""

import re
from collections.abc import Iterator

from memory.documents.formats.blocks import Block, Parsed

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")


def parse(text: str) -> Parsed:
    """Split a text into blocks. The first kind of underline is the outermost level."""
    blocks = tuple(_blocks(text))
    return Parsed(next((block.text for block in blocks if block.kind == "heading"), ""), blocks)


def paragraphs(text: str) -> Iterator[str]:
    """Return the text between empty lines, with its indentation."""
    for part in re.split(r"\n[ \t\f\v]*\n", text.replace("\r\n", "\n").replace("\r", "\n")):
        if paragraph := "\n".join(line.rstrip() for line in part.split("\n")).strip("\n"):
            yield paragraph


def _blocks(text: str) -> Iterator[Block]:
    levels: list[str] = []
    for paragraph in paragraphs(text):
        lines = paragraph.split("\n")
        if len(lines) >= 3 and _underlines(lines[0], lines[1]) and lines[0].rstrip() == lines[2].rstrip():
            lines = lines[1:]  # the heading also has a line above it
        if len(lines) >= 2 and _underlines(lines[1], lines[0]):
            if lines[1][0] not in levels:
                levels.append(lines[1][0])
            yield Block("heading", " ".join(lines[0].split()), level=levels.index(lines[1][0]) + 1)
            lines = lines[2:]
        if lines:
            yield Block("text", "\n".join(lines))


def _underlines(line: str, title: str) -> bool:
    title = title.strip()
    return bool(title and _UNDERLINE.fullmatch(line)) and len(line.rstrip()) >= 0.8 * len(title)
