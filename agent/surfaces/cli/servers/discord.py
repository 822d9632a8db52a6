"""`hachi discord`: the bot, until it is stopped."""

import typer

from agent.errors import SettingsError
from agent.surfaces.cli.output import say
from agent.surfaces.cli.session import Session, async_command

NO_TOKEN = "set DISCORD_TOKEN to your bot's token; docs/discord.md shows where it comes from"
NO_EXTRA = "discord.py is not installed; run: pip install 'hachi[discord]'"


@async_command
async def discord(context: typer.Context) -> None:
    """Be a bot on Discord."""
    session: Session = context.obj
    settings = session.settings()
    try:
        from agent.surfaces.bots.discord.running import run
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in ("discord", "aiohttp"):
            raise SettingsError(NO_EXTRA) from error
        raise
    if settings.discord_token is None:
        raise SettingsError(NO_TOKEN)
    settings.chosen_model  # noqa: B018 - raises before anybody writes
    async with session.companion(upkeep=True) as pet:
        await run(pet, settings.discord_token.get_secret_value(), say)
