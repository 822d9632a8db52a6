"""The Discord bot on discord.py: messages become turns; commands and buttons get answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import discord
import yarl
from discord.backoff import ExponentialBackoff
from discord.gateway import DiscordWebSocket

from agent.companion import Companion
from agent.surfaces.bots.commands import Commands
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.discord.access import explained, invite_link, use_address
from agent.surfaces.bots.discord.interactions import build_tree, press
from agent.surfaces.bots.discord.messages import (
    API_ERRORS,
    incoming,
    is_from_person,
    messages_of,
    origin_of,
    place_of,
)
from agent.surfaces.bots.discord.platform import DiscordPlatform
from agent.surfaces.bots.discord.rendering import HachiButton
from agent.surfaces.bots.platform_jobs import MOST_DMS, PlatformJobs, is_late, who_answers
from agent.surfaces.signals import on_stop_signal
from memory.audience import Place

log = logging.getLogger("hachi.discord")

SOURCE = "discord"
"""How the ids of its users and messages begin."""
MOST_EXPONENT = 5
"""discord.py waits up to two to this power of seconds before it connects again; without it, 17 minutes."""
MOST_MESSAGES = 100
"""Messages of one channel that are caught up."""
INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
"""The events that Discord sends. Message content is privileged: the developer portal enables it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where the bot works, and for whom: ids of Discord. What is empty limits nothing."""

    servers: frozenset[int] = frozenset()
    channels: frozenset[int] = frozenset()
    """A channel's threads are within it."""
    roles: frozenset[int] = frozenset()

    def permits(self, channel: Any, person: Any = None) -> bool:
        """Return whether the bot may be used there, and by this person, who has a role if one is demanded. No
        list names direct messages, and nobody has a role there."""
        guild = getattr(channel, "guild", None)
        ids = {channel.id, getattr(channel, "parent_id", None)}
        roles = {role.id for role in getattr(person, "roles", ())}
        return (
            (guild is None or not self.servers or guild.id in self.servers)
            and (guild is None or not self.channels or not self.channels.isdisjoint(ids))
            and (person is None or not self.roles or not self.roles.isdisjoint(roles))
        )


class DiscordBot(discord.AutoShardedClient):
    """Opens as many shards as Discord recommends: one, and more for a bot in more than a thousand servers."""

    def __init__(self, pet: Companion, say: Callable[[str], None] = log.info, **options: Any) -> None:
        """`say` receives a line once the bot is online; `options` are those of `AutoShardedClient`."""
        super().__init__(
            intents=INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),  # no text of a model or a memory may ping people
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            **options,
        )
        settings = pet.settings
        self.pet = pet
        self.online = asyncio.Event()
        self.commands = Commands(pet)
        self.tree = build_tree(self, self.commands)
        self.pressed = partial(press, self.commands)
        self.allowed = Allowed(settings.discord_servers, settings.discord_channels, settings.discord_roles)
        label = pet.components.transcript.speakers.label
        self.platform = DiscordPlatform(self, label, pet.clock)
        self.conversations = Conversations(pet, self.platform)
        self.jobs = PlatformJobs(self.conversations, SOURCE, self._catch_up, self._connected)
        self.jobs.unasked = not self.allowed.roles  # with roles, direct messages are nobody's
        parsers = self._connection.parsers
        parsers.update({event: _readable(event, parse) for event, parse in parsers.items()})
        self._say = say
        self._lost: set[int] = set()
        """The shards without a session."""
        self._sessions = object()
        self._order = asyncio.Lock()
        self._leaving = AsyncExitStack()

    async def setup_hook(self) -> None:
        self.add_dynamic_items(HachiButton)
        discord.shard.ExponentialBackoff = _short_backoff  # type: ignore
        await self._find_gateway()
        try:
            await self.tree.sync()
        except API_ERRORS as error:
            log.error("the commands are unchanged, Discord does not take them: %s", error)

    async def _find_gateway(self) -> None:
        """Use the gateway that the API names at every connection. discord.py asks only before the first:
        a new session would go to Discord's own, past `DISCORD_API_URL`."""
        self.shard_count, address, *_ = await self.http.get_bot_gateway()
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(address)

    def _connected(self) -> object | None:
        """Return the sessions of all shards; None while one is lost."""
        return None if self._lost else self._sessions

    async def on_shard_disconnect(self, shard_id: int) -> None:
        self._lost.add(shard_id)

    async def on_shard_resumed(self, shard_id: int) -> None:
        """Note that the shard is back. Discord sends what its session missed."""
        self._lost.discard(shard_id)

    async def on_shard_ready(self, shard_id: int) -> None:
        """Note a new session: what was written since the one before is caught up."""
        self._lost.discard(shard_id)
        self._sessions = object()

    async def _catch_up(self, since: datetime) -> None:
        now, deliveries = self.pet.clock(), self.pet.conversations.deliveries
        private = await deliveries.private_channels(SOURCE, MOST_DMS)
        async for message in missed_messages(self, since, private):
            await self.on_message(message, late=is_late(message.created_at, now))

    async def on_ready(self) -> None:
        if not self.online.is_set():
            self.online.set()
            await self._leaving.enter_async_context(self.jobs.running())
            link = invite_link(int(self.application_id or 0))
            self._say(
                f"on Discord as {self.user}, {who_answers(self.pet.settings)}; to invite it into a server, "
                f"open {link}"
            )
        log.info("on Discord as %s, in %d servers", self.user, len(self.guilds))

    async def on_message(self, message: discord.Message, *, late: bool = False) -> None:
        """Receive a message. A lock keeps their order: discord.py runs a task for each."""
        async with self._order:
            try:
                await self._receive(message, late)
            except Exception as error:
                log.warning("message %s is not received: %s: %s", message.id, type(error).__name__, error)

    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Receive an edit. Where Discord only adds a preview of a link, the event has no time of an edit."""
        if payload.message.edited_at:
            await self.on_message(payload.message)

    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        await self._forget(payload.channel_id, {payload.message_id})

    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        await self._forget(payload.channel_id, payload.message_ids)

    async def _forget(self, channel: int, ids: Collection[int]) -> None:
        for id in sorted(ids):
            try:
                await self.conversations.deleted(origin_of(channel, id))
            except Exception as error:
                log.error("message %s was deleted and is not forgotten: %s", id, error)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        log.exception("cannot handle Discord's event %s", event_method)

    def stop_reply(self, origin: str) -> None:
        """End the reply to the message with this origin, as it stands."""
        self.conversations.interrupt(lambda message: message.origin == origin)

    async def leave(self) -> None:
        """Accept no more messages, finish the replies in progress, and close."""
        await self._leaving.aclose()
        await self.conversations.stop()
        await self.close()

    async def _receive(self, message: discord.Message, late: bool) -> None:
        if not is_from_person(message) or not self.allowed.permits(message.channel):
            return
        place = await self._place(message)
        author: Any = message.author
        if self.allowed.roles:
            author = await self.platform.member(author, message.guild)
        if place is not None and self.allowed.permits(message.channel, author):
            read = replace(incoming(message, place, self.user), late=late)
            come = self.conversations.edited if read.version else self.conversations.receive
            try:
                await come(read, await self.pet.people.places.listening(place))
            except Exception as error:
                self.conversations.note_failure([read], error)
                raise

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


async def missed_messages(
    client: discord.Client, since: datetime, private: Sequence[str]
) -> AsyncIterator[discord.Message]:
    """Yield what was written since then in servers and in the `private` channels, each channel's in order."""
    after = discord.utils.time_snowflake(since)
    channels: list[Any] = []
    for guild in client.guilds:
        channels += [*guild.text_channels, *guild.voice_channels, *guild.threads]
    wanted = [(one.id, one) for one in channels if (one.last_message_id or 0) > after]
    for id, cached in [*wanted, *((int(id), client.get_channel(int(id))) for id in reversed(private))]:
        try:
            channel: Any = cached or await client.fetch_channel(id)
            written = await client.http.logs_from(id, MOST_MESSAGES, after=after)
        except API_ERRORS as error:
            log.warning("what was written in channel %s meanwhile is not read: %s", id, error)
            continue
        for message in messages_of(channel, written):
            yield message


def _readable(event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
    """Leave out an event that discord.py cannot parse: it would end the process."""

    def parse_or_skip(data: Any) -> None:
        try:
            parse(data)
        except Exception as error:
            log.error("Discord's event %s cannot be read: %s: %s", event, type(error).__name__, error)

    return parse_or_skip


def _short_backoff(*arguments: Any, **options: Any) -> ExponentialBackoff[Any]:
    backoff = ExponentialBackoff[Any](*arguments, **options)
    backoff._max = MOST_EXPONENT
    return backoff


async def run(
    pet: Companion,
    token: str,
    say: Callable[[str], None] = print,
    heartbeat: Path | None = None,
    **options: Any,
) -> None:
    """Run until SIGTERM or Ctrl-C. `options` are those of discord.Client. Raises SettingsError if Discord
    rejects the bot, HachiError if it cannot be reached."""
    use_address(pet.settings)
    await pet.runtime()  # loads everything for a turn, so that wrong settings raise before anybody writes
    client, stop = DiscordBot(pet, say, **options), asyncio.Event()
    client.jobs.heartbeat = heartbeat
    with on_stop_signal(stop.set):
        online, stopped = asyncio.create_task(_online(client, token)), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([online, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await client.leave()
            stopped.cancel()
            online.cancel()
            await asyncio.gather(stopped, online, return_exceptions=True)
    if not online.cancelled() and (error := online.exception()):
        raise error


async def _online(client: DiscordBot, token: str) -> None:
    with explained():
        await client.start(token)
