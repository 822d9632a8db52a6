"""Reminders on Discord. They are the bot's only messages that ping, and ping only their recipient."""

import logging
from typing import Any

import discord

from agent.surfaces.bots.discord.messages import channel_id, user_id
from agent.surfaces.bots.reminders import Post
from memory.audience import Place

log = logging.getLogger("hachi.discord")


def reminder_post(client: discord.Client) -> Post:
    async def post(user: str, place: Place | None, text: str) -> bool:
        id, channel = user_id(user), channel_id(place) if place else None
        if id is None or (place and channel is None):
            return False
        person = discord.Object(id)
        try:
            if channel is None:
                await (await client.create_dm(person)).send(text, suppress_embeds=True)
            else:
                target: Any = client.get_channel(channel) or await client.fetch_channel(channel)
                mentions = discord.AllowedMentions(everyone=False, roles=False, users=[person])
                await target.send(f"<@{id}> {text}", allowed_mentions=mentions, suppress_embeds=True)
        except (discord.Forbidden, discord.NotFound) as error:
            log.warning("cannot remind %s in %s: %s", user, channel or "direct messages", error)
            return False
        return True

    return post
