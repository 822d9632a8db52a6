"""Messages on Discord: who wrote them, where, and to whom."""

from typing import Any

import discord

from memory.audience import PRIVATE, Place

ROOT = Place(("discord",))
"""Contains every place on Discord."""
API_ERRORS = (discord.DiscordException, OSError)
"""The exceptions that calls of Discord's API raise."""
_KINDS = (discord.MessageType.default, discord.MessageType.reply)
"""Other kinds are notices: somebody joined, a message was pinned."""


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


def is_addressed(message: discord.Message, me: Any) -> bool:
    """Return whether the message is private, mentions the bot or its role, or replies to the bot."""
    role = message.guild.self_role if message.guild else None
    return (
        isinstance(message.channel, discord.DMChannel)
        or me.id in message.raw_mentions
        or (role is not None and role.id in message.raw_role_mentions)
        or _replied_to(message) == me.id
    )


def is_to_others(message: discord.Message) -> bool:
    """Return whether the message mentions or replies to somebody."""
    return bool(message.raw_mentions) or _replied_to(message) is not None


def _replied_to(message: discord.Message) -> int | None:
    replied = message.reference.resolved if message.reference else None
    return replied.author.id if isinstance(replied, discord.Message) else None
