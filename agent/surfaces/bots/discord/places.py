"""Where and who something on Discord is to Hachi."""

from typing import Any

import discord

from memory.audience import PRIVATE, Place


def user_name(id: int) -> str:
    return f"discord:{id}"


def user_id(name: str) -> int | None:
    """The id on Discord of one of our users; None for others'."""
    platform, _, id = name.partition(":")
    return int(id) if platform == "discord" and id.isdecimal() else None


def place_of(channel: Any) -> Place | None:
    """A direct message is private; a thread is a place of its own in its channel. None where it cannot be
    told: a message of a server that is not known must not pass for a private one."""
    if isinstance(channel, discord.DMChannel):
        return PRIVATE
    guild = getattr(channel, "guild", None)
    if guild is None or isinstance(channel, discord.PartialMessageable):
        return None
    if isinstance(channel, discord.Thread):
        return Place(("discord", str(guild.id), str(channel.parent_id), str(channel.id)))
    return Place(("discord", str(guild.id), str(channel.id)))


def channel_id(place: Place) -> int | None:
    """The channel or thread on Discord that a place is; None where it is none."""
    ours = len(place.path) in (3, 4) and place.path[0] == "discord" and place.path[-1].isdecimal()
    return int(place.path[-1]) if ours else None
