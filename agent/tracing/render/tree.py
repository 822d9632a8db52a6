"""A tree of things to tell, and how it is drawn in plain lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memory.spans import Span

Tone = Literal["plain", "strong", "good", "bad", "warning", "faint"]
"""What a line is like, for whoever can colour it."""


@dataclass(slots=True)
class Node:
    """One thing, with what belongs to it. All texts are harmless."""

    text: str
    tone: Tone = "plain"
    nodes: list["Node"] = field(default_factory=list)
    block: Sequence[str] = ()
    """Lines below it that are shown as they are."""
    span: Span | None = None
    """What it tells of, for whoever shows when it happened."""

    def add(self, text: str, tone: Tone = "plain", block: Sequence[str] = ()) -> "Node":
        self.nodes.append(Node(text, tone, block=block))
        return self.nodes[-1]


@dataclass(frozen=True, slots=True)
class Line:
    branch: str
    """What leads to it: ``│  ├─ ``."""
    text: str
    tone: Tone = "plain"

    def __str__(self) -> str:
        return f"{self.branch}{self.text}".rstrip()


def drawn(node: Node) -> Iterator[Line]:
    """The node's own line, then what is below it."""
    yield Line("", node.text, node.tone)
    yield from _below(node, "")


def _below(node: Node, before: str) -> Iterator[Line]:
    for text in node.block:
        yield Line(f"{before}{'│  ' if node.nodes else '   '}", text)
    for place, inner in enumerate(node.nodes, 1):
        last = place == len(node.nodes)
        yield Line(f"{before}{'└─ ' if last else '├─ '}", inner.text, inner.tone)
        yield from _below(inner, f"{before}{'   ' if last else '│  '}")
