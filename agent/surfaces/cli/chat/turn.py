"""One turn whose text is printed as it comes."""

import sys
from typing import TYPE_CHECKING, Any

from agent.surfaces.cli.output import plain

if TYPE_CHECKING:
    from agent.companion import Companion


def announce(pet: "Companion") -> None:
    """The offline stand-in says what it is."""
    if pet.settings.offline:
        from agent.models.offline import ANNOUNCEMENT

        print(ANNOUNCEMENT, file=sys.stderr)


async def show_turn(
    pet: "Companion", text: str, user: str, place: str, *, name: str = "", ready: Any = None
) -> None:
    """One turn with its text as it comes. `ready` is awaited first, when given."""
    from rich.console import Console

    begun = False
    waiting = Console().status("thinking", spinner="dots")
    waiting.start()
    try:
        if ready is not None:
            await ready()
        async with pet.stream(text, user=user, place=place) as stream:
            async for piece in stream:
                if not begun:
                    begun = True
                    waiting.stop()
                    print(name, end="")
                print(plain(piece), end="", flush=True)
    finally:
        waiting.stop()
        if begun:
            print(flush=True)
