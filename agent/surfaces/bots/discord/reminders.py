"""Reminders on Discord. They are the bot's only messages that ping, and ping only their recipient."""

import logging
from typing import Any

import discord

from agent.surfaces.bots.discord.messages import ROOT, channel_id, user_id
from agent.surfaces.bots.reminders import ReminderSender
from memory.audience import Place
from memory.people.places import Places

log = logging.getLogger("hachi.discord")

_CLOSED = (discord.Forbidden, discord.NotFound)


def reminder_sender(client: discord.Client, places: Places) -> ReminderSender:
    async def post(user: str, place: Place, text: str) -> bool:
        channel, id = channel_id(place), user_id(user)
        if channel is None or id is None:
            return False
        mentions = discord.AllowedMentions(everyone=False, roles=False, users=[discord.Object(id)])
        try:
            target: Any = client.get_channel(channel) or await client.fetch_channel(channel)
            await target.send(f"<@{id}> {text}", allowed_mentions=mentions, suppress_embeds=True)
        except _CLOSED as error:
            log.warning("cannot write to channel %s: %s", channel, error)
            return False
        return True

    async def post_privately(user: str, text: str) -> bool:
        if (id := user_id(user)) is None:
            return False
        try:
            await (await client.create_dm(discord.Object(id))).send(text, suppress_embeds=True)
        except _CLOSED as error:
            log.warning("the direct messages of %s are closed: %s", user, error)
            return False
        return True

    return ReminderSender(places, ROOT, post, post_privately)
