"""Running the bot until it is told to stop; and what Discord's refusals mean."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aiohttp
import discord

from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.discord.client import PERMISSIONS, HachiClient
from agent.surfaces.bots.stopping import stopping

if TYPE_CHECKING:
    from agent.companion import Companion

PORTAL = "https://discord.com/developers/applications"
WRONG_TOKEN = f"Discord refuses DISCORD_TOKEN; copy the bot's token anew from its page Bot at {PORTAL}"
NO_CONTENT = (
    "Discord does not let the bot read messages; switch on Message Content Intent on its page Bot at "
    f"{PORTAL}"
)


async def run(pet: "Companion", token: str, say: Callable[[str], None] = print, **options: Any) -> None:
    """Until SIGTERM or Ctrl-C; `say` is told how to invite the bot; `options` are those of discord.Client.
    Raises SettingsError where Discord will not have it as it is, HachiError where it cannot be reached."""
    await (
        pet.runtime()
    )  # what is needed to think is loaded before anybody writes, and faults of settings told
    client = HachiClient(pet, **options)
    stop = asyncio.Event()
    with stopping(stop):
        online = asyncio.create_task(_online(client, token))
        told = asyncio.create_task(_tell(client, say))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([online, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (told, stopped):
                task.cancel()
            await client.leave()
            online.cancel()
            await asyncio.gather(told, stopped, online, return_exceptions=True)
    if not online.cancelled() and (error := online.exception()):
        raise error


async def _online(client: HachiClient, token: str) -> None:
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


async def _tell(client: HachiClient, say: Callable[[str], None]) -> None:
    await client.online.wait()
    link = discord.utils.oauth_url(
        int(client.application_id or 0), permissions=PERMISSIONS, scopes=("bot", "applications.commands")
    )
    say(f"on Discord as {client.user}; to invite it into a server, open {link}")
