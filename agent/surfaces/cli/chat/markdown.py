"""Show Markdown at a terminal as it arrives."""

from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.spinner import Spinner

from agent.surfaces.cli.output import plain

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply
    from tools.proposed_call import Confirm

_FENCES = ("```", "~~~")
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


async def print_turn(
    pet: "Companion", text: str, user: str, place: str, confirm: "Confirm | None" = None, *, prefix: str = ""
) -> "Reply":
    """Run a turn, and show the text as it arrives. Returns the reply.

    A spinner shows until the text begins. Then the last block is redrawn as it grows; earlier blocks do not
    change."""
    shown, begun = "", False
    with Live(Spinner("dots", "thinking"), console=Console(), refresh_per_second=12) as live:
        async with pet.stream(text, user=user, place=place, confirm=confirm) as stream:
            async for piece in stream:
                shown += plain(piece)
                if not begun and (first := shown.lstrip()):
                    begun = True
                    shown = prefix + ("" if first[0].isalpha() or not prefix else "\n\n") + first
                end = end_of_finished_blocks(shown)
                if end:
                    live.console.print(rendered(shown[:end]), "")
                    shown = shown[end:]
                if begun:
                    live.update(rendered(shown))
        live.transient = not shown.strip()
        return stream.reply


def end_of_finished_blocks(text: str) -> int:
    """Return the position after the last blank line outside fenced code."""
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
    """Render Markdown with its line breaks, as chats show it; HTML stays text."""
    shown = Markdown("", hyperlinks=False)
    shown.parsed = _PARSER.parse(text)
    for block in shown.parsed:
        for child in block.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return shown
