"""What a document is made of, once its format no longer matters."""

from dataclasses import dataclass
from typing import Literal


class UnreadableDocument(Exception):
    """Why a file cannot be read, in one line that says what to do; the text follows the file's name."""


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, list, piece of code or table."""

    kind: Literal["heading", "text", "list", "code", "table"]
    text: str
    level: int = 0
    """Of a heading: 1 is the outermost."""
    parts: tuple[str, ...] = ()
    """Where a block that is too long may be cut: the items of a list."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document as it was read. An empty title leaves it to the file's name."""

    title: str
    blocks: tuple[Block, ...]
