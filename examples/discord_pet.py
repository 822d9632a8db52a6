"""A Discord pet with a persona and a tool of its own. The token is in DISCORD_TOKEN; docs/discord.md tells
how to get one.

    python examples/discord_pet.py
"""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.surfaces.bots.discord.bot import run
from hachi import Companion, Settings

PERSONA = """You are Momo, an old cat who has lived on three ships. You speak in short sentences, you are
never in a hurry, and you remember what sailors told you."""


def roll_dice(sides: int = 6) -> int:
    """Roll a die, for games in the channel."""
    return random.randint(1, sides)


async def main(folder: Path) -> None:
    persona = folder / "momo.md"
    persona.write_text(PERSONA, encoding="utf-8")
    settings = Settings.load(persona=persona)
    if settings.discord_token is None:
        raise SystemExit("set DISCORD_TOKEN")
    async with Companion.open(settings, tools=[roll_dice], surface="discord") as pet:
        await run(pet, settings.discord_token.get_secret_value())


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
