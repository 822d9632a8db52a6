"""What a document consists of once its format no longer matters."""

from dataclasses import dataclass
from typing import Literal


class UnreadableDocument(Exception):
    """Why a file cannot be read, in one line that says what to do; callers put the file's name before it."""


@dataclass(frozen=True, slots=True)
class Block:
    kind: Literal["heading", "text", "list", "code", "table"]
    text: str
    level: int = 0
    """Of a heading: 1 is the outermost."""
    parts: tuple[str, ...] = ()
    """The items of a list, between which it may be cut."""


@dataclass(frozen=True, slots=True)
class Parsed:
    title: str
    """Empty if the document has none."""
    blocks: tuple[Block, ...]
