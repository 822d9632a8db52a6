"""Reads the content of a message: its text with people's names, and its files."""

import re
from collections.abc import Iterator
from typing import Any

import discord

from agent.surfaces.bots.attachments import Attachment, display_name
from agent.surfaces.bots.platform import Content, without_call

_TOKEN = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")


def content_of(message: discord.Message, me: Any) -> Content:
    files = [*message.attachments, *(file for one in message.message_snapshots for file in one.attachments)]
    attachments = [Attachment(file.filename, file.content_type or "", file.size, file.read) for file in files]
    author = display_name(message.author.display_name, message.author.name)
    return Content(author, readable_text(message, me), attachments)


def readable_text(message: discord.Message, me: Any) -> str:
    """Return the text with names instead of ids, and without a mention of the bot at its start or end. A
    mention alone becomes the bot's name. The title of a forum's post, stickers and forwarded messages are
    added, each marked as what it is."""
    role = message.guild.self_role if message.guild else None
    own = "|".join(f"<@[!&]?{one.id}>" for one in (me, role) if one is not None)
    text = without_call(message.content, own)
    text = "\n".join(filter(None, (_title(message), text, *_added(message))))
    text = _TOKEN.sub(lambda found: _readable(found, message, me), text).strip()
    return text or ("" if message.attachments else f"@{me.name}")


def _title(message: discord.Message) -> str:
    """Return the title of the forum's post that the message begins."""
    thread = message.channel if isinstance(message.channel, discord.Thread) else None
    return thread.name if thread is not None and thread.id == message.id else ""


def _added(message: discord.Message) -> Iterator[str]:
    for sticker in message.stickers:
        yield f"(sticker: {sticker.name})"
    for forwarded in message.message_snapshots:
        if forwarded.content:
            yield f"(forwarded, not written by the sender: “{forwarded.content}”)"


def _readable(found: re.Match[str], message: discord.Message, me: Any) -> str:
    guild = message.guild
    if found["emoji"]:
        return f":{found['emoji']}:"
    if found["user"]:
        id = int(found["user"])
        people = [me, *message.mentions, *([guild.get_member(id)] if guild else [])]
        name = next((one.display_name for one in people if one is not None and one.id == id), None)
        return f"@{display_name(name, 'somebody')}"
    if found["role"]:
        role = guild.get_role(int(found["role"])) if guild else None
        return f"@{display_name(role.name if role else None, 'a role')}"
    channel = guild.get_channel_or_thread(int(found["channel"])) if guild else None
    return f"#{display_name(channel.name if channel else None, 'a channel')}"
