"""Finds the messages that came while Discord's session was lost and another one began."""

import logging
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import Any

import discord

from agent.surfaces.bots.discord.messages import API_ERRORS

log = logging.getLogger("hachi.discord")

MOST_MESSAGES = 100
"""Messages of one channel that are caught up."""
DM_SHARD = 0
"""The shard to which Discord sends direct messages."""
MOST_DMS = 100
"""Direct conversations that are looked at, those used last."""


class Missed:
    def __init__(self, now: datetime) -> None:
        start = discord.utils.time_snowflake(now)
        self._newest: dict[int, int] = defaultdict(lambda: start)
        """Shard → the newest message that was seen. Ids grow with time."""
        self._since: dict[int, int] = {}
        """Shard → the newest one when its session began."""
        self._dms: OrderedDict[int, discord.DMChannel] = OrderedDict()

    def note(self, message: discord.Message) -> None:
        """Note that a message came."""
        shard = message.guild.shard_id if message.guild else DM_SHARD
        self._newest[shard] = max(self._newest[shard], message.id)
        if isinstance(message.channel, discord.DMChannel):
            self._dms[message.channel.id] = message.channel
            self._dms.move_to_end(message.channel.id)
            if len(self._dms) > MOST_DMS:
                self._dms.popitem(last=False)

    def begin(self, shard: int) -> None:
        """Note that a session begins: what comes from now on is not missed."""
        self._since[shard] = self._newest[shard]

    async def messages(self, shard: int, guilds: Iterable[discord.Guild]) -> AsyncIterator[discord.Message]:
        """Yield the messages that are newer than the shard's session before, each channel's in order."""
        after = discord.Object(self._since[shard])
        private = [*self._dms.values()] if shard == DM_SHARD else []
        for channel in [*self._channels(shard, guilds), *private]:
            try:
                async for message in channel.history(after=after, limit=MOST_MESSAGES, oldest_first=True):
                    yield message
            except API_ERRORS as error:
                log.warning("what was written in channel %s meanwhile is not read: %s", channel.id, error)

    def _channels(self, shard: int, guilds: Iterable[discord.Guild]) -> list[Any]:
        """The channels and threads in which something was written since."""
        found: list[Any] = []
        for guild in guilds:
            if guild.shard_id == shard:
                found += [*guild.text_channels, *guild.voice_channels, *guild.threads]
        return [channel for channel in found if (channel.last_message_id or 0) > self._since[shard]]
