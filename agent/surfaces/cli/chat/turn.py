"""One turn whose text is printed while the model writes it."""

import sys
from typing import TYPE_CHECKING

from agent.surfaces.cli.output import plain

if TYPE_CHECKING:
    from agent.companion import Companion
    from agent.types import Reply

ANNOUNCEMENT = (
    "No language model is configured: this is Hachi's small rule-based stand-in. "
    "Set OPENAI_API_KEY or OPENAI_BASE_URL for a real one."
)


def announce_offline(pet: "Companion") -> None:
    """Say on stderr that the offline stand-in answers, if it does."""
    if pet.settings.offline:
        print(ANNOUNCEMENT, file=sys.stderr)


async def print_turn(pet: "Companion", text: str, user: str, place: str, *, prefix: str = "") -> "Reply":
    """Show `prefix` and the text, which may be Markdown, while it is written. Returns the reply."""
    from agent.surfaces.cli.chat.markdown import MarkdownWriter

    with MarkdownWriter(prefix) as shown:
        async with pet.stream(text, user=user, place=place) as stream:
            async for piece in stream:
                shown.write(plain(piece))
            return stream.reply
