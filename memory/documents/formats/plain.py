"""Plain text to blocks: paragraphs between empty lines, and headings that are underlined."""

import re
from collections.abc import Iterator

from memory.documents.formats.blocks import Block, Parsed

_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")


def parse(text: str) -> Parsed:
    """As reStructuredText counts, the first kind of underline is the outermost level."""
    blocks = tuple(_blocks(text))
    first = next((block.text for block in blocks if block.kind == "heading"), "")
    return Parsed(first, blocks)


def paragraphs(text: str) -> Iterator[str]:
    """What stands between empty lines; indentation is kept."""
    for part in re.split(r"\n[ \t\f\v]*\n", text.replace("\r\n", "\n").replace("\r", "\n")):
        if kept := "\n".join(line.rstrip() for line in part.split("\n")).strip("\n"):
            yield kept


def _blocks(text: str) -> Iterator[Block]:
    levels: list[str] = []
    for paragraph in paragraphs(text):
        lines = paragraph.split("\n")
        if len(lines) >= 3 and _is_underline(lines[0], lines[1]) and lines[0].rstrip() == lines[2].rstrip():
            lines = lines[1:]  # a line above the heading too
        if len(lines) >= 2 and _is_underline(lines[1], lines[0]):
            if lines[1][0] not in levels:
                levels.append(lines[1][0])
            yield Block("heading", " ".join(lines[0].split()), level=levels.index(lines[1][0]) + 1)
            lines = lines[2:]
        if lines:
            yield Block("text", "\n".join(lines))


def _is_underline(line: str, title: str) -> bool:
    title = title.strip()
    return bool(title and _UNDERLINE.fullmatch(line)) and len(line.rstrip()) >= 0.8 * len(title)
