"""The blocks of a parsed document, whatever its format."""

from dataclasses import dataclass
from typing import Literal


class UnreadableDocument(Exception):
    """A file cannot be read. The text is one line that says what to do; callers prefix the file's name."""


@dataclass(frozen=True, slots=True)
class Block:
    kind: Literal["heading", "text", "list", "code", "table"]
    text: str
    level: int = 0
    """The level of a heading; 1 is the outermost. 0 for other blocks."""
    parts: tuple[str, ...] = ()
    """The items of a list. Chunking may cut between them."""


@dataclass(frozen=True, slots=True)
class Parsed:
    title: str
    """Empty if the document has none."""
    blocks: tuple[Block, ...]
