"""A tree of text lines: the common form of all renderings of a trace, shown to a given depth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.tracing.render.text import width
from memory.process.spans import Span

Tone = Literal["plain", "strong", "good", "bad", "warning", "faint"]
"""The possible colours of a line."""
FULL = 3
"""The depth at which everything is shown; 0 is the smallest."""
EVERYWHERE, SHORT, DETAIL = range(FULL + 1), range(FULL), range(FULL, FULL + 1)
"""The depths at which a node is shown: always; only without details; only with details."""


@dataclass(slots=True)
class Node:
    """One line and its children. All texts are harmless."""

    text: str
    tone: Tone = "plain"
    nodes: list["Node"] = field(default_factory=list)
    block: Sequence[str] = ()
    """Lines below the node that are shown verbatim, at full depth."""
    span: Span | None = None
    """The span that the node shows, for renderings with times."""
    folded: bool = False
    """Whether the node is closed at first, on pages."""
    depths: range = EVERYWHERE

    def detail(
        self, text: str, tone: Tone = "plain", block: Sequence[str] = (), *, folded: bool = False
    ) -> "Node":
        """Add a node that is shown only at full depth, and return it."""
        return self.add(Node(text, tone, block=block, folded=folded, depths=DETAIL))

    def add(self, node: "Node") -> "Node":
        self.nodes.append(node)
        return node

    def shown(self, depth: int) -> list["Node"]:
        """Return the children that are shown at this depth."""
        return [node for node in self.nodes if depth in node.depths]


@dataclass(frozen=True, slots=True)
class Line:
    branch: str
    """The lines of the tree before the text: ``│  ├─ ``."""
    text: str
    tone: Tone = "plain"

    def __str__(self) -> str:
        return f"{self.branch}{self.text}".rstrip()


def walk(
    node: Node, inner: Callable[[Node], Sequence[Node]], branch: str = "", below: str = ""
) -> Iterator[tuple[Node, str, str]]:
    """Yield the node and the descendants that `inner` selects, each with the tree's lines before its text and
    below it."""
    yield node, branch, below
    nodes = inner(node)
    for one in nodes:
        last = one is nodes[-1]
        yield from walk(
            one, inner, f"{below}{'└─ ' if last else '├─ '}", f"{below}{'   ' if last else '│  '}"
        )


def drawn(node: Node, depth: int = FULL) -> Iterator[Line]:
    """Yield the lines of the node and its descendants."""
    for one, branch, below in walk(node, lambda one: one.shown(depth)):
        yield Line(branch, one.text, one.tone)
        for text in one.block if depth == FULL else ():
            yield Line(f"{below}{'│  ' if one.shown(depth) else '   '}", text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with aligned columns."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    padded = (
        (cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)) for row in rows
    )
    return ["  ".join(cells).rstrip() for cells in padded]
