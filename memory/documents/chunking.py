"""Cut a document into chunks along its structure.

A chunk belongs to one heading. Paragraphs and lists are joined up to `MAX_LENGTH` characters; longer ones are
cut between sentences or items. Code and tables stay whole up to `HARD_LIMIT`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from memory.documents.formats.blocks import Block

MAX_LENGTH = 1200
"""The most characters of a chunk, except for code and tables."""
HARD_LIMIT = 8000
"""The most characters of code or a table in one chunk, so that a model can read it."""
MIN_TAIL = 200
"""The last chunk under a heading is appended to the one before if it has fewer characters than this."""
REVISION = 1
"""Part of each document's digest. Raise it when chunking changes: all files are then cut again."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？｡])|(?<=[؟۔।॥])\s*")


@dataclass(frozen=True, slots=True)
class ChunkText:
    heading: str
    """The headings above the chunk, outermost first, joined by `` > ``."""
    text: str


def split_into_chunks(blocks: Sequence[Block]) -> list[ChunkText]:
    """Return the chunks in document order. A heading without text yields no chunk."""
    path: list[Block] = []
    chunks: list[ChunkText] = []
    for are_headings, group in groupby(blocks, lambda block: block.kind == "heading"):
        if are_headings:
            for heading in group:
                path = [outer for outer in path if outer.level < heading.level] + [heading]
        else:
            joined = " > ".join(heading.text for heading in path)
            chunks += [ChunkText(joined, text) for text in _combine(group)]
    return chunks


def _combine(section: Iterable[Block]) -> list[str]:
    """Return the chunks of the blocks under one heading."""
    texts: list[str] = []
    for block in section:
        for number, unit in enumerate(_units(block)):
            separator = "\n" if number and block.kind == "list" else "\n\n"
            if texts and len(texts[-1]) + len(separator) + len(unit) <= MAX_LENGTH:
                texts[-1] += separator + unit
            else:
                texts.append(unit)
    if len(texts) > 1 and len(texts[-1]) < MIN_TAIL and len(texts[-2]) <= MAX_LENGTH:
        texts[-2:] = ["\n\n".join(texts[-2:])]
    return texts


def _units(block: Block) -> list[str]:
    """Return the parts of a block that are not cut any further."""
    if len(block.text) <= (HARD_LIMIT if block.kind in {"code", "table"} else MAX_LENGTH):
        return [block.text]
    if block.kind == "code":
        return _split_lines(block.text.split("\n"), HARD_LIMIT)
    if block.kind == "table":
        return _split_table(block.text.split("\n"))
    return [unit for part in block.parts or (block.text,) for unit in _split_text(part)]


def _split_text(text: str) -> list[str]:
    if len(text) <= MAX_LENGTH:
        return [text]
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    sentences = (text[start:end] for start, end in pairwise([0, *ends, len(text)]))
    pieces = (piece for sentence in sentences for piece in _split_sentence(sentence))
    return [joined.strip() for joined in _join(pieces, MAX_LENGTH)]


def _split_sentence(sentence: str) -> Iterator[str]:
    """Cut a sentence that is too long between words, or anywhere if it has no spaces."""
    while len(sentence) > MAX_LENGTH:
        at = max(sentence.rfind(space, 1, MAX_LENGTH) for space in (" ", "\n")) + 1 or MAX_LENGTH
        yield sentence[:at]
        sentence = sentence[at:]
    yield sentence


def _split_table(lines: list[str]) -> list[str]:
    """Cut a table between lines. Each part gets the two header lines."""
    header = "\n".join(lines[:2])
    if len(header) > HARD_LIMIT // 2:
        return _split_lines(lines, HARD_LIMIT)
    return [f"{header}\n{part}" for part in _split_lines(lines[2:], HARD_LIMIT - len(header) - 1)]


def _split_lines(lines: Iterable[str], limit: int) -> list[str]:
    parts = (
        f"{line[start : start + limit]}\n"
        for line in lines
        for start in range(0, max(1, len(line)), limit)
    )  # fmt: skip
    return [joined.removesuffix("\n") for joined in _join(parts, limit)]


def _join(parts: Iterable[str], limit: int) -> list[str]:
    """Join as many parts as fit into each text. The limit does not count the space at the end of a part."""
    texts: list[str] = []
    for part in parts:
        if texts and len(texts[-1]) + len(part.rstrip()) <= limit:
            texts[-1] += part
        else:
            texts.append(part)
    return [text for text in texts if text.strip()]
