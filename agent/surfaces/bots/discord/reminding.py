"""Reminders on Discord. Each is a new message, since edits notify nobody, and the only one that pings."""

import logging
from typing import Any

import discord

from agent.surfaces.bots.discord.places import channel_id, user_id
from memory.audience import Place
from memory.people.places import Places

log = logging.getLogger("hachi.discord")

CLOSED = "I have a reminder for you, but I may not write to you: your direct messages are closed to me."
"""Without what it is about: that was said in private."""


async def remind(client: discord.Client, places: Places, user: str, place: Place | None, text: str) -> bool:
    """Whether it has reached them: in the channel it was asked for in, or in private. Where neither may be
    written to, they hear where they last spoke that there is something. Raises what Discord raises."""
    id = user_id(user)
    if id is None:
        return False
    if place is not None and await _in_channel(client, place, id, text):
        return True
    try:
        channel = await client.create_dm(discord.Object(id))
        await channel.send(text, suppress_embeds=True)
    except (discord.Forbidden, discord.NotFound) as error:
        log.warning("direct messages of %s are closed: %s", user, error)
        last = await places.last_of(user, Place(("discord",)))
        return last is not None and await _in_channel(client, last, id, CLOSED)
    return True


async def _in_channel(client: discord.Client, place: Place, user: int, text: str) -> bool:
    """With a ping of them and of nobody else. False where the channel is gone or closed."""
    id = channel_id(place)
    if id is None:
        return False
    mentions = discord.AllowedMentions(everyone=False, roles=False, users=[discord.Object(user)])
    try:
        channel: Any = client.get_channel(id) or await client.fetch_channel(id)
        await channel.send(f"<@{user}> {text}", allowed_mentions=mentions, suppress_embeds=True)
    except (discord.Forbidden, discord.NotFound) as error:
        log.warning("channel %s cannot be written to: %s", id, error)
        return False
    return True
