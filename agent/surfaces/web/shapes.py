"""What a pane is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agent.surfaces.web.visible import Cut, cut

Cell = Cut | tuple[Cut, str]
"""A text, or a text and what stands small below it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text of any length."""

    shape: ClassVar[str] = "passage"
    title: str
    text: Cut
    note: str = ""
    open: bool = True
    code: bool = False
    tone: str = ""
    """``error`` where it tells what went wrong, ``new`` where it was not there before."""

    def __bool__(self) -> bool:
        return bool(self.text.text)


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and short values."""

    shape: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]
    title: str = ""

    def __bool__(self) -> bool:
        return bool(self.pairs)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table."""

    shape: ClassVar[str] = "grid"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    dim: Sequence[bool] = ()
    """By row whether it stands back."""
    more: int = 0
    """Rows that are not shown."""
    at: str = ""
    numbers: frozenset[int] = field(default_factory=frozenset)
    """Columns of numbers."""


@dataclass(frozen=True, slots=True)
class Group:
    """Passages under one heading, which opens and closes with it."""

    shape: ClassVar[str] = "group"
    title: str
    parts: Sequence[Passage]
    note: str = ""
    open: bool = True
    more: int = 0
    at: str = ""

    def __bool__(self) -> bool:
        return bool(self.parts)


Block = Passage | Facts | Grid | Group


def passage(
    title: str,
    value: Any,
    at: str = "",
    *,
    open: bool = True,
    code: bool = False,
    tone: str = "",
    note: str = "",
) -> Passage:
    """Without a value it is empty, and not shown."""
    text = Cut("", 0) if value in (None, "", [], {}) else cut(value, at)
    return Passage(title, text, note, open, code or not isinstance(value, str), tone)
