"""A tree of text lines, the common form of all trace renderings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.tracing.render.text import width
from memory.process.spans import Span

Tone = Literal["plain", "strong", "good", "bad", "warning", "faint"]
"""How a line may be coloured."""


@dataclass(slots=True)
class Node:
    """One line and its children. All texts are harmless."""

    text: str
    tone: Tone = "plain"
    nodes: list["Node"] = field(default_factory=list)
    block: Sequence[str] = ()
    """Lines below it that are shown verbatim."""
    span: Span | None = None
    """The span that it shows, for renderings with times."""
    folded: bool = False
    """Whether pages show it closed at first."""

    def add(
        self, text: str, tone: Tone = "plain", block: Sequence[str] = (), *, folded: bool = False
    ) -> "Node":
        self.nodes.append(Node(text, tone, block=block, folded=folded))
        return self.nodes[-1]


@dataclass(frozen=True, slots=True)
class Line:
    branch: str
    """The lines of the tree before the text: ``│  ├─ ``."""
    text: str
    tone: Tone = "plain"

    def __str__(self) -> str:
        return f"{self.branch}{self.text}".rstrip()


def drawn(node: Node) -> Iterator[Line]:
    """Yield the lines of the node and its descendants."""
    yield Line("", node.text, node.tone)
    yield from _below(node, "")


def _below(node: Node, before: str) -> Iterator[Line]:
    for text in node.block:
        yield Line(f"{before}{'│  ' if node.nodes else '   '}", text)
    for place, inner in enumerate(node.nodes, 1):
        last = place == len(node.nodes)
        yield Line(f"{before}{'└─ ' if last else '├─ '}", inner.text, inner.tone)
        yield from _below(inner, f"{before}{'   ' if last else '│  '}")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    padded = (
        (cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)) for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in padded]
