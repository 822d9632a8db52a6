"""Files that come with a message on Discord."""

import logging
from collections.abc import Sequence
from functools import partial

import discord

from agent.surfaces.bots import files
from agent.surfaces.bots.files import File, Unreadable

log = logging.getLogger("hachi.discord")


async def read_files(attachments: Sequence[discord.Attachment]) -> str:
    """What is in them, as the bots tell it. Raises nothing of Discord's."""
    return await files.read_files([_file(attachment) for attachment in attachments])


def _file(attachment: discord.Attachment) -> File:
    kind = attachment.content_type or ""
    return File(attachment.filename, kind, attachment.size, partial(_content, attachment))


async def _content(attachment: discord.Attachment) -> bytes:
    try:
        return await attachment.read()
    except (discord.DiscordException, OSError) as error:
        log.warning("an attachment cannot be read: %s: %s", type(error).__name__, error)
        raise Unreadable("it could not be fetched") from error
