"""The Discord bot on discord.py: messages become turns; commands and buttons get answers."""

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import discord

from agent.companion import Companion
from agent.errors import FAULTS
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.discord.allowed import Allowed
from agent.surfaces.bots.discord.interactions import build_tree, press
from agent.surfaces.bots.discord.messages import (
    API_ERRORS,
    ROOT,
    is_addressed,
    is_from_person,
    is_to_others,
    origin_of,
    place_of,
    user_name,
)
from agent.surfaces.bots.discord.missed import Missed
from agent.surfaces.bots.discord.reminders import reminder_post
from agent.surfaces.bots.discord.rendering import HachiButton
from agent.surfaces.bots.discord.replies import DiscordPlatform
from agent.surfaces.bots.errors import describe_error
from agent.surfaces.bots.platform import IncomingMessage, should_answer
from agent.surfaces.bots.reminders import reminder_sender
from memory.audience import Place

log = logging.getLogger("hachi.discord")

PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    read_message_history=True,
)
"""Requested when the bot is invited."""
INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
"""The events that Discord sends. Message content is privileged: the developer portal enables it."""


class DiscordBot(discord.AutoShardedClient):
    """Opens as many shards as Discord recommends: one, and more for a bot in more than a thousand servers."""

    def __init__(self, pet: Companion, **options: Any) -> None:
        """`options` are those of `discord.AutoShardedClient`."""
        super().__init__(
            intents=INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),  # no text of a model or a memory may ping people
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            **options,
        )
        self.pet = pet
        self.online = asyncio.Event()
        self.commands = Commands(pet)
        self.tree = build_tree(self, self.commands)
        self.pressed = partial(press, self.commands)
        self.allowed = Allowed.by(pet.settings)
        self._missed = Missed(pet.clock())
        self.conversations = Conversations(pet, DiscordPlatform(self, self.commands))
        self._order = asyncio.Lock()
        self._unregister: Callable[[], None] = lambda: None

    async def setup_hook(self) -> None:
        self.add_dynamic_items(HachiButton)
        try:
            await self.tree.sync()
        except API_ERRORS as error:
            log.error("the commands are unchanged, Discord does not take them: %s", error)

    async def on_shard_connect(self, shard_id: int) -> None:
        self._missed.begin(shard_id)

    async def on_shard_ready(self, shard_id: int) -> None:
        if self.online.is_set():
            async for message in self._missed.messages(shard_id, self.guilds):
                await self.on_message(message)

    async def on_ready(self) -> None:
        if not self.online.is_set():
            self.online.set()
            send = reminder_sender(self.pet.people.places, ROOT, reminder_post(self))
            self._unregister = self.pet.reminders.register(user_name(""), send)
        log.info("on Discord as %s, in %d servers", self.user, len(self.guilds))

    async def on_message(self, message: discord.Message) -> None:
        """Receive a message. A lock keeps their order: discord.py runs a task for each."""
        async with self._order:
            self._missed.note(message)
            try:
                await self._receive(message)
            except FAULTS as error:
                await self._apologize(message, error)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        await self._forget({payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        await self._forget(payload.message_ids)

    async def _forget(self, ids: Collection[int]) -> None:
        """Forget messages that were deleted on Discord."""
        for id in sorted(ids):
            try:
                await self.conversations.deleted(origin_of(id))
            except FAULTS as error:
                log.error("message %s was deleted and is not forgotten: %s", id, error)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        log.exception("cannot handle Discord's event %s", event_method)

    async def leave(self) -> None:
        """Accept no more messages, finish the replies in progress, and close."""
        self._unregister()
        await self.conversations.stop()
        await self.close()

    async def _receive(self, message: discord.Message) -> None:
        if not is_from_person(message) or not self.allowed.permits_channel(message.channel):
            return
        if (place := await self._place(message)) is None:
            return
        listening = await self.pet.people.places.listening(place)
        addressed, to_others = is_addressed(message, self.user), is_to_others(message)
        if not should_answer(listening, addressed=addressed, to_others=to_others):
            return
        if self.allowed.permits_person(await self._author(message)):
            user, origin = user_name(message.author.id), origin_of(message.id)
            await self.conversations.accept(IncomingMessage(user, place, source=message, origin=origin))

    async def _author(self, message: discord.Message) -> Any:
        """Return the author, with their roles if those matter. Discord does not tell them in a history."""
        if self.allowed.roles and message.guild and not isinstance(message.author, discord.Member):
            try:
                return await message.guild.fetch_member(message.author.id)
            except API_ERRORS as error:
                log.warning("message %s is not read, its author's roles are unknown: %s", message.id, error)
        return message.author

    async def _place(self, message: discord.Message) -> Place | None:
        """Return the message's place. A thread that Discord has not sent is fetched, because its channel
        decides who may read it."""
        channel: Any = message.channel
        if isinstance(channel, discord.PartialMessageable) and channel.guild_id is not None:
            try:
                channel = await self.fetch_channel(channel.id)
            except discord.DiscordException as error:
                log.warning("message %s is not read, its channel is unknown: %s", message.id, error)
        return place_of(channel)

    async def _apologize(self, message: discord.Message, error: Exception) -> None:
        """Tell a person who waits for an answer that none will come."""
        text = describe_error(error)
        if is_addressed(message, self.user):
            try:
                await message.channel.send(text)
            except API_ERRORS as failure:
                log.warning("message %s is not answered: %s", message.id, failure)
