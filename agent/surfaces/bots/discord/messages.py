"""Messages on Discord: who wrote them, where, to whom, and what they say."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import discord

from agent.surfaces.bots.attachments import Attachment, display_name
from agent.surfaces.bots.platform import Content, IncomingMessage, Label, quoted, without_call
from memory.audience import PRIVATE, Place

ROOT = Place(("discord",))
"""Contains every place on Discord."""
API_ERRORS = (discord.DiscordException, OSError)
"""The exceptions that calls of Discord's API raise."""
_KINDS = (discord.MessageType.default, discord.MessageType.reply)
"""Other kinds are notices: somebody joined, a message was pinned."""
_TOKEN = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")


def user_name(id: int | str) -> str:
    return f"discord:{id}"


def origin_of(id: int) -> str:
    """Return the message's id across platforms."""
    return f"discord:{id}"


def user_id(name: str) -> int | None:
    """Return the Discord id of one of Hachi's users; None for users of other platforms."""
    id = name.removeprefix("discord:")
    return int(id) if id != name and id.isdecimal() else None


def place_of(channel: Any) -> Place | None:
    """Return the place of a channel; a thread is a place within it. None if it is unknown: a message of an
    unknown server must not count as private."""
    if isinstance(channel, discord.DMChannel):
        return PRIVATE
    guild = getattr(channel, "guild", None)
    if guild is None or isinstance(channel, discord.PartialMessageable):
        return None
    parent = (channel.parent_id,) if isinstance(channel, discord.Thread) else ()
    return Place(("discord", *map(str, (guild.id, *parent, channel.id))))


def channel_id(place: Place) -> int | None:
    """Return the id of the channel or thread; None if the place is not on Discord."""
    ours = len(place.path) in (3, 4) and place.path[0] == "discord" and place.path[-1].isdecimal()
    return int(place.path[-1]) if ours else None


def is_from_person(message: discord.Message) -> bool:
    return message.type in _KINDS and not message.author.bot and message.webhook_id is None


def incoming(message: discord.Message, place: Place, me: Any) -> IncomingMessage:
    return IncomingMessage(
        user_name(message.author.id),
        place,
        source=message,
        origin=origin_of(message.id),
        addressed=is_addressed(message, me),
        to_others=bool(message.raw_mentions) or replied_to(message) is not None,
        in_thread=len(place.path) == 4,  # within its channel
    )


def is_addressed(message: discord.Message, me: Any) -> bool:
    """Return whether the message is private, mentions the bot or its role, or replies to the bot."""
    role = message.guild.self_role if message.guild else None
    return (
        isinstance(message.channel, discord.DMChannel)
        or me.id in message.raw_mentions
        or (role is not None and role.id in message.raw_role_mentions)
        or replied_to(message) == me.id
    )


def replied_to(message: discord.Message) -> int | None:
    """Return the author of the message that it replies to."""
    replied = message.reference.resolved if message.reference else None
    return replied.author.id if isinstance(replied, discord.Message) else None


async def content_of(message: discord.Message, place: Place, me: Any, label: Label) -> Content:
    files = [*message.attachments, *(file for one in message.message_snapshots for file in one.attachments)]
    attachments = [Attachment(file.filename, file.content_type or "", file.size, file.read) for file in files]
    replied = message.reference.resolved if message.reference else None
    replied = replied if isinstance(replied, discord.Message) and replied.content else None
    people = [*message.mentions, *([replied.author, *replied.mentions] if replied else [])]
    names = {
        one.id: await label(display_name(one.display_name, one.name), user_name(one.id), place)
        for one in people
        if one.id != me.id
    }
    names[me.id] = me.display_name
    role = message.guild.self_role if message.guild else None
    calls = "|".join(f"<@[!&]?{one.id}>" for one in (me, role) if one is not None)
    parts = [*_title(message), without_call(message.content, calls), *_added(message)]
    text = _readable("\n".join(filter(None, parts)), message, names)
    author = display_name(message.author.display_name, message.author.name)
    answered = _readable(replied.content, message, names) if replied else ""
    return Content(
        author,
        text or ("" if message.attachments else f"@{me.name}"),
        attachments,
        replies_to=quoted("in reply to", names[replied.author.id], answered) if replied else "",
    )


def _title(message: discord.Message) -> Iterator[str]:
    """Yield the title of the forum's post that the message begins."""
    if isinstance(message.channel, discord.Thread) and message.channel.id == message.id:
        yield message.channel.name


def _added(message: discord.Message) -> Iterator[str]:
    """Yield stickers and forwarded messages, each marked as what it is."""
    for sticker in message.stickers:
        yield f"(sticker: {sticker.name})"
    for forwarded in message.message_snapshots:
        if forwarded.content:
            yield quoted("forwarded", "", forwarded.content)


def _readable(text: str, message: discord.Message, names: Mapping[int, str]) -> str:
    """Return the text with names instead of ids."""
    return _TOKEN.sub(lambda found: _name(found, message.guild, names), text).strip()


def _name(found: re.Match[str], guild: discord.Guild | None, names: Mapping[int, str]) -> str:
    if found["emoji"]:
        return f":{found['emoji']}:"
    if found["user"]:
        return f"@{names.get(int(found['user']), 'somebody')}"
    if found["role"]:
        role = guild.get_role(int(found["role"])) if guild else None
        return f"@{display_name(role.name if role else None, 'a role')}"
    channel = guild.get_channel_or_thread(int(found["channel"])) if guild else None
    return f"#{display_name(channel.name if channel else None, 'a channel')}"
