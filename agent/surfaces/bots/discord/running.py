"""Runs the Discord bot until it is stopped."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import discord

from agent.companion import Companion
from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.discord.bot import PERMISSIONS, DiscordBot
from agent.surfaces.signals import on_stop_signal

PORTAL = "https://discord.com/developers/applications"
WRONG_TOKEN = f"Discord refuses DISCORD_TOKEN; copy the bot's token anew from its page Bot at {PORTAL}"
NO_CONTENT = (
    "Discord does not let the bot read messages; switch on Message Content Intent on its page Bot at "
    f"{PORTAL}"
)


async def run(pet: Companion, token: str, say: Callable[[str], None] = print, **options: Any) -> None:
    """Run until SIGTERM or Ctrl-C. `say` receives the link that invites the bot; `options` are those of
    discord.Client. Raises SettingsError if Discord rejects the bot, HachiError if it cannot be reached."""
    await pet.runtime()  # loads everything for a turn, so that wrong settings raise before anybody writes
    client, stop = DiscordBot(pet, **options), asyncio.Event()
    with on_stop_signal(stop.set):
        online = asyncio.create_task(_online(client, token))
        announcing = asyncio.create_task(_announce(client, say))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([online, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await client.leave()
            for task in (announcing, stopped, online):
                task.cancel()
            await asyncio.gather(announcing, stopped, online, return_exceptions=True)
    if not online.cancelled() and (error := online.exception()):
        raise error


async def _online(client: DiscordBot, token: str) -> None:
    try:
        await client.start(token)
    except discord.LoginFailure as error:
        raise SettingsError(WRONG_TOKEN) from error
    except discord.PrivilegedIntentsRequired as error:
        raise SettingsError(NO_CONTENT) from error
    except discord.ConnectionClosed as error:
        if error.code == 4004:
            raise SettingsError(WRONG_TOKEN) from error
        raise HachiError(f"Discord closed the connection for good (code {error.code})") from error
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        raise HachiError(f"Discord cannot be reached ({error})") from error


async def _announce(client: DiscordBot, say: Callable[[str], None]) -> None:
    await client.online.wait()
    link = discord.utils.oauth_url(
        int(client.application_id or 0), permissions=PERMISSIONS, scopes=("bot", "applications.commands")
    )
    say(f"on Discord as {client.user}; to invite it into a server, open {link}")
