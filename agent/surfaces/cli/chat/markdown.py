"""Shows Markdown at a terminal while it is written."""

from types import TracebackType
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.spinner import Spinner
from rich.text import Text

from agent.surfaces.cli.output import plain

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply

_FENCES = ("```", "~~~")
_BLOCK_MARKS = "#-*+>|`~"
"""A text that begins with one of these is more than a paragraph: the name of the speaker stands above it."""
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


async def print_turn(pet: "Companion", text: str, user: str, place: str, *, prefix: str = "") -> "Reply":
    """Take a turn, and show `prefix` and the text while it is written. Returns the reply."""
    with MarkdownWriter(prefix) as shown:
        async with pet.stream(text, user=user, place=place) as stream:
            async for piece in stream:
                shown.write(plain(piece))
            return stream.reply


class MarkdownWriter:
    """A context manager. A spinner turns until the first text; then the last block is redrawn as it grows,
    and those before it stay."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._rest = ""
        self._live = Live(Spinner("dots", "thinking"), console=Console(), refresh_per_second=12)
        self._begun = False

    def __enter__(self) -> "MarkdownWriter":
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.transient = not self._rest.strip()
        self._live.stop()

    def write(self, piece: str) -> None:
        """Show one more piece, which contains no control characters."""
        self._rest += piece
        if not self._begun and self._rest.strip():
            self._begun = True
            first = self._rest.lstrip()[0]
            block = first in _BLOCK_MARKS or first.isdigit()
            self._rest = self._prefix + ("\n\n" if block and self._prefix else "") + self._rest.lstrip()
        end = end_of_finished_blocks(self._rest)
        if end:
            self._live.console.print(self._lines(self._rest[:end]), "", sep="\n")
            self._rest = self._rest[end:]
        if self._begun:
            self._live.update(self._lines(self._rest))

    def _lines(self, text: str) -> Text:
        """The text as lines without blank ones around them, which Markdown has between its blocks."""
        rows = self._live.console.render_lines(rendered(text), pad=False)
        lines = [Text.assemble(*((part.text, part.style or "") for part in row)) for row in rows]
        for line in lines:
            line.rstrip()
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return Text("\n").join(lines)


def end_of_finished_blocks(text: str) -> int:
    """The position after the last blank line that is in no fenced code."""
    position = end = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        position += len(line)
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in _FENCES:
            fence = mark
        elif not line.strip() and line.endswith("\n"):
            end = position
    return end


def rendered(text: str) -> Markdown:
    """Markdown with its line breaks, as chats show it; HTML stays text."""
    shown = Markdown("", hyperlinks=False)
    shown.parsed = _PARSER.parse(text)
    for block in shown.parsed:
        for child in block.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return shown
