"""What Discord lets the bot do: its token and its intents."""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import discord

from agent.errors import HachiError, SettingsError
from agent.settings import Settings

PORTAL = "https://discord.com/developers/applications"
WRONG_TOKEN = f"Discord refuses DISCORD_TOKEN; copy the bot's token anew from its page Bot at {PORTAL}"
NO_CONTENT = (
    "Discord does not let the bot read messages; switch on Message Content Intent on its page Bot at "
    f"{PORTAL}"
)


PERMISSIONS = discord.Permissions(
    view_channel=True, send_messages=True, send_messages_in_threads=True, read_message_history=True
)
"""Requested when the bot is invited."""


def invite_link(application: int) -> str:
    scopes = ("bot", "applications.commands")
    return discord.utils.oauth_url(application, permissions=PERMISSIONS, scopes=scopes)


async def check_access(settings: Settings) -> str:
    """Return who the bot is. Raises as `check_invited` does."""
    return (await check_invited(settings))[0]


async def check_invited(settings: Settings) -> tuple[str, str]:
    """Return who the bot is, and the link that invites it into a server. Raises SettingsError if its token is
    refused or it may not read messages, and HachiError if Discord cannot be reached."""
    use_address(settings)
    token = settings.discord_token
    with explained():
        async with discord.Client(intents=discord.Intents.none()) as client:
            await client.login(token.get_secret_value() if token else "")
            application = await client.application_info()
            may = application.flags
    if not (may.gateway_message_content or may.gateway_message_content_limited):
        raise SettingsError(NO_CONTENT)
    return f"{client.user}, may read messages", invite_link(application.id)


def use_address(settings: Settings) -> None:
    """Call Discord's API where the settings say."""
    if address := settings.discord_api_url:
        discord.http.Route.BASE = address.rstrip("/")


@contextmanager
def explained() -> Iterator[None]:
    """Raise SettingsError if Discord rejects the bot, HachiError if it cannot be reached."""
    try:
        yield
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
