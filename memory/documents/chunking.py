"""A document cut into chunks along its structure.

A chunk lies under one heading. Paragraphs and lists are put together up to `LONGEST` characters; a longer
paragraph is cut between sentences, a longer list between items. Code and tables are kept whole up to
`HARD_LIMIT`, and cut between lines only beyond it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.documents.formats.blocks import Block

LONGEST = 1200
"""Characters of a chunk, unless its code or table is longer."""
HARD_LIMIT = 8000
"""Characters from which even code and tables are cut: a model is to be able to read a chunk."""
SMALL = 200
"""The last chunk under a heading joins the one before where it has fewer characters than this."""
REVISION = 1
"""Raised whenever documents are cut in another way: then all are cut anew when they are added again."""

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？｡])|(?<=[؟۔।॥])\s*")


@dataclass(frozen=True, slots=True)
class ChunkText:
    heading: str
    """The headings it stands under, outermost first, joined by `` > ``."""
    text: str


def cut(blocks: Sequence[Block]) -> list[ChunkText]:
    """The document's chunks in its order. A heading without text under it makes none."""
    pieces = []
    for heading, section in _sections(blocks):
        pieces += [ChunkText(heading, text) for text in _packed(section)]
    return pieces


def _sections(blocks: Sequence[Block]) -> Iterator[tuple[str, list[Block]]]:
    """What stands under each heading, with the way to it."""
    path: list[tuple[int, str]] = []
    section: list[Block] = []
    for block in blocks:
        if block.kind != "heading":
            section.append(block)
            continue
        if section:
            yield _joined(path), section
        path = [step for step in path if step[0] < block.level] + [(block.level, block.text)]
        section = []
    if section:
        yield _joined(path), section


def _joined(path: Sequence[tuple[int, str]]) -> str:
    return " > ".join(text for _, text in path)


def _packed(section: Sequence[Block]) -> list[str]:
    texts: list[str] = []
    for block in section:
        for number, unit in enumerate(_units(block)):
            between = "\n" if number and block.kind == "list" else "\n\n"
            if texts and len(texts[-1]) + len(between) + len(unit) <= LONGEST:
                texts[-1] += between + unit
            else:
                texts.append(unit)
    if len(texts) > 1 and len(texts[-1]) < SMALL and len(texts[-2]) <= LONGEST:
        texts[-2:] = ["\n\n".join(texts[-2:])]
    return texts


def _units(block: Block) -> list[str]:
    """What is not cut any further."""
    if block.kind == "code":
        return _cut_code(block.text)
    if block.kind == "table":
        return _cut_table(block.text)
    if len(block.text) <= LONGEST:
        return [block.text]
    parts = block.parts or (block.text,)
    return [unit for part in parts for unit in _cut_text(part)]


def _cut_text(text: str) -> list[str]:
    """Between sentences; one that is too long by itself between words, or else between characters."""
    return _fill(_whole_sentences(text), LONGEST) if len(text) > LONGEST else [text]


def _whole_sentences(text: str) -> Iterator[str]:
    start = 0
    for end in [match.end() for match in _SENTENCE.finditer(text)] + [len(text)]:
        yield from _short_enough(text[start:end])
        start = end


def _short_enough(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        at = max(sentence.rfind(space, 1, LONGEST) for space in (" ", "\n")) + 1 or LONGEST
        yield sentence[:at]
        sentence = sentence[at:]
    yield sentence


def _fill(parts: Iterator[str], longest: int) -> list[str]:
    """As many of these in one as there is room for. They carry the space between them at their end."""
    texts: list[str] = []
    for part in parts:
        if texts and len(texts[-1]) + len(part.rstrip()) <= longest:
            texts[-1] += part
        else:
            texts.append(part)
    return [text.strip() for text in texts if text.strip()]


def _cut_code(text: str) -> list[str]:
    """Beyond the limit each part of a fence gets a fence of its own."""
    if len(text) <= HARD_LIMIT:
        return [text]
    lines = text.split("\n")
    fence = re.match(r"\s*(`{3,}|~{3,})", lines[0])
    if fence is None:
        return _cut_lines(lines, HARD_LIMIT)
    end = fence[1]
    inner = lines[1:-1] if lines[-1].strip().startswith(end) else lines[1:]
    room = HARD_LIMIT - len(lines[0]) - len(end) - 2
    return [f"{lines[0]}\n{part}\n{end}" for part in _cut_lines(inner, room)]


def _cut_table(text: str) -> list[str]:
    """Beyond the limit each part of a table gets the two lines of its head."""
    if len(text) <= HARD_LIMIT:
        return [text]
    lines = text.split("\n")
    head = "\n".join(lines[:2])
    if len(head) > HARD_LIMIT // 2:
        return _cut_lines(lines, HARD_LIMIT)
    return [f"{head}\n{part}" for part in _cut_lines(lines[2:], HARD_LIMIT - len(head) - 1)]


def _cut_lines(lines: Sequence[str], longest: int) -> list[str]:
    texts: list[str] = []
    for line in lines:
        for start in range(0, max(1, len(line)), longest):
            part = line[start : start + longest]
            if texts and len(texts[-1]) + 1 + len(part) <= longest:
                texts[-1] += "\n" + part
            else:
                texts.append(part)
    return [text for text in texts if text.strip()]
