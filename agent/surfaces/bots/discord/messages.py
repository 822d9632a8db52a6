"""Messages on Discord: who wrote them, where, to whom, and what they say."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import discord

from agent.surfaces.bots.attachments.attachment import Attachment, display_name, download, is_at
from agent.surfaces.bots.platform import (
    MAX_THREAD,
    Content,
    Hourly,
    IncomingMessage,
    Label,
    NearbyMessage,
    Thread,
    Unreadable,
    described,
    moment,
    quoted,
    without_call,
)
from memory.audience import PRIVATE, Place

log = logging.getLogger("hachi.discord")


API_ERRORS = (discord.DiscordException, OSError)
"""The exceptions that calls of Discord's API raise."""
_HOSTS = (".discordapp.com", ".discordapp.net")
"""Where Discord keeps what is attached. A URL there says itself that it may be read, for a day."""
_KINDS = (discord.MessageType.default, discord.MessageType.reply)
"""Other kinds are notices: somebody joined, a message was pinned."""
_BY_BOTS = (discord.MessageType.chat_input_command, discord.MessageType.context_menu_command)
_TOKEN = re.compile(
    r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+|t:(?P<time>-?\d+)(?::\w)?"
    r"|(?P<command>/[^<>:]+):\d+|id:(?P<page>\w+)[^<>]*)>"
)


def user_name(id: int | str) -> str:
    return f"discord:{id}"


def origin_of(channel: int, id: int) -> str:
    """Return the message's id across platforms."""
    return f"discord:{channel}:{id}"


def ids_of(origin: str) -> tuple[int, int]:
    """Return the ids of the channel and the message of an `origin_of`."""
    _, channel, id = origin.split(":")
    return int(channel), int(id)


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


def as_message(channel: Any, data: Mapping[str, Any]) -> discord.Message:
    """Return a message from what Discord's API tells of it. Other servers send null, or leave out, what
    Discord does not; discord.py cannot read that."""
    fields = {key: value for key, value in data.items() if value is not None or key == "edited_timestamp"}
    message: discord.Message = channel._state.create_message(channel=channel, data={"mentions": [], **fields})
    return message


def messages_of(channel: Any, history: Sequence[Mapping[str, Any]]) -> Iterator[discord.Message]:
    """Yield, oldest first, the messages of a history that can be read. discord.py's own ends at the first one
    that it cannot."""
    for one in reversed(history):
        try:
            message = as_message(channel, one)
        except Exception as error:
            log.warning("a message in channel %s is not read: %r", channel.id, error)
        else:
            yield message


def incoming(message: discord.Message, place: Place, me: Any) -> IncomingMessage:
    return IncomingMessage(
        user_name(message.author.id),
        place,
        source=message,
        origin=origin_of(message.channel.id, message.id),
        addressed=is_addressed(message, me),
        to_others=bool(message.raw_mentions) or replied_to(message) is not None,
        in_thread=len(place.path) == 4,  # within its channel
        version=message.edited_at.isoformat() if message.edited_at else "",
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


@dataclass(eq=False)
class Reader:
    client: discord.Client
    label: Label
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        self._members = Hourly(self._ask_who, self.clock)

    @property
    def _me(self) -> Any:
        return self.client.user

    async def member(self, person: Any, guild: discord.Guild | None) -> Any:
        """Return the person as a member of the server, with what they are called and their roles there.
        Discord tells it with an event, and not with a history or the message that one replies to."""
        if guild is None or isinstance(person, discord.Member):
            return person
        return await self._members.get((guild, person.id)) or person

    async def _ask_who(self, wanted: tuple[discord.Guild, int]) -> discord.Member | None:
        guild, id = wanted
        try:
            return await guild.fetch_member(id)
        except API_ERRORS as error:
            log.info("it is not known what %s is called in a server: %s", id, error)
            return None

    async def may_read(self, user: str, places: Sequence[Place]) -> Mapping[Place, str]:
        names = {}
        for place in places:
            try:
                names[place] = await self._readable_name(user_id(user), place)
            except (discord.NotFound, discord.Forbidden):
                names[place] = ""  # of a deleted channel, or one that the bot does not see
            except API_ERRORS as error:
                log.info("it is not known whether %s can read %s: %s", user, place, error)
        return names

    async def _readable_name(self, user: int | None, place: Place) -> str:
        """Return what a channel or thread is called that the person can read now; empty if they cannot. May
        raise."""
        id = channel_id(place)
        if user is None or id is None:
            return ""
        guild = self.client.get_guild(int(place.path[1]))
        if guild is None or guild.unavailable:
            raise discord.ClientException("the server is away")
        member = await guild.fetch_member(user)
        channel: Any = guild.get_channel_or_thread(id) or await self.client.fetch_channel(id)
        may = channel.permissions_for(member)
        if channel.guild.id != guild.id or not (may.read_messages and may.read_message_history):
            return ""
        if isinstance(channel, discord.VoiceChannel | discord.StageChannel) and not may.connect:
            return ""
        if isinstance(channel, discord.Thread) and channel.is_private() and not may.manage_threads:
            await channel.fetch_member(user)
        return f"#{display_name(channel.name, 'a channel')}"

    async def _name(self, person: Any, guild: discord.Guild | None) -> str:
        member = await self.member(person, guild)
        return display_name(member.display_name, member.name)

    async def read(self, message: IncomingMessage) -> Content:
        source, me = message.source, self._me
        guild = source.guild
        replied = source.reference.resolved if source.reference else None
        role = guild.self_role if guild else None
        calls = "|".join(f"<@[!&]?{one.id}>" for one in (me, role) if one is not None)
        body = without_call(source.content, calls)
        text = await self._readable("\n".join(filter(None, (body, *_besides(source)))), source, message.place)
        return Content(
            await self._name(source.author, guild),
            text or ("" if source.attachments else f"@{me.name}"),
            _files_of(source),
            _called(source.channel),
            replies_to=self._line(replied) if isinstance(replied, discord.Message) else None,
        )

    async def files_of(self, line: NearbyMessage) -> list[Attachment]:
        return _files_of(line.source)

    async def quote(self, line: NearbyMessage, message: IncomingMessage) -> str:
        source, guild, me = line.source, message.source.guild, self._me
        parts = [source.content, *_besides(source), *_attached_texts(source)]
        text = await self._readable("\n".join(filter(None, parts)), source, message.place)
        name = (
            me.display_name
            if not line.user
            else await self.label(await self._name(source.author, guild), line.user, message.place)
        )
        return f"{name}: {text}" if text else ""

    async def _readable(self, text: str, source: discord.Message, place: Place) -> str:
        """Return the text with names instead of ids."""
        me, guild = self._me, source.guild
        names = {
            one.id: await self.label(await self._name(one, guild), user_name(one.id), place)
            for one in source.mentions
            if one.id != me.id
        }
        names[me.id] = me.display_name
        return _TOKEN.sub(lambda found: _word(found, guild, names), text).strip()

    def _line(self, one: discord.Message) -> NearbyMessage:
        return NearbyMessage(
            "" if one.author.id == self._me.id else user_name(one.author.id),
            is_addressed(one, self._me),
            bool(one.raw_mentions) or replied_to(one) is not None,
            origin_of(one.channel.id, one.id),
            one,
        )

    async def thread(self, message: IncomingMessage) -> Thread:
        source, channel = message.source, message.source.channel
        history = await self.client.http.logs_from(channel.id, MAX_THREAD, before=source.id)
        lines = [one for one in messages_of(channel, history) if one.type in (*_KINDS, *_BY_BOTS)]
        if channel.id not in {source.id, *(one.id for one in lines)} and (
            first := await self._first(channel)
        ):
            lines.insert(0, first)
        return Thread([*map(self._line, lines)], channel.name)

    async def _first(self, thread: discord.Thread) -> discord.Message | None:
        """Return the message with the thread's id: in the thread where it is a forum's post, else in the
        channel. None where there is none any more, or the bot may not see it."""
        is_post = isinstance(thread.parent, discord.ForumChannel)
        where: Any = thread if is_post or not thread.parent else thread.parent
        try:
            return as_message(where, await self.client.http.get_message(where.id, thread.id))
        except API_ERRORS as error:
            log.info("the first message of thread %s is not read: %s", thread.id, error)
            return None

    async def fetch(self, origin: str) -> IncomingMessage | None:
        channel, id = ids_of(origin)
        try:
            event = await self.client.http.get_message(channel, id)
        except discord.NotFound:
            return None
        except discord.Forbidden as error:
            raise Unreadable from error
        where: Any = self.client.get_channel(channel) or await self.client.fetch_channel(channel)
        if (place := place_of(where)) is None:
            return None
        message = as_message(where, event)
        return incoming(message, place, self._me) if is_from_person(message) else None


def _called(channel: Any) -> str:
    """Return what a channel or thread of a server is called; empty for others."""
    guild = getattr(channel, "guild", None)
    if guild is None or isinstance(channel, discord.PartialMessageable):
        return ""
    parent = getattr(channel, "parent", None)
    names = [channel.name, f"#{parent.name}"] if parent else [f"#{channel.name}"]
    return " in ".join(display_name(name, "a channel") for name in (*names, guild.name))


def _files_of(message: Any) -> list[Attachment]:
    """Return the files of a message and of those that it forwards."""
    return [
        Attachment(
            file.filename,
            file.content_type or "",
            file.size,
            partial(download, file.url, may_ask=lambda url: is_at(url, _HOSTS, discord.http.Route.BASE)),
            is_voice=one.flags.voice,
            seconds=file.duration,
        )
        for one in (message, *message.message_snapshots)
        for file in one.attachments
    ]


def _besides(message: Any) -> Iterator[str]:
    """Yield in words what a message, or the copy of a forwarded one, holds besides its text: the title of the
    forum's post that it begins, stickers, a poll, and forwarded messages."""
    channel = getattr(message, "channel", None)
    if isinstance(channel, discord.Thread) and channel.id == message.id:
        yield channel.name
    for sticker in message.stickers:
        yield f"(sticker: {sticker.name})"
    if poll := getattr(message, "poll", None):
        yield described("poll", [{"text": text} for text in (poll.question, *(a.text for a in poll.answers))])
    for forwarded in getattr(message, "message_snapshots", ()):
        parts = (forwarded.content, *_besides(forwarded), *_attached_texts(forwarded))
        if text := "\n".join(filter(None, parts)):
            yield quoted("forwarded", "", text)


def _attached_texts(message: Any) -> Iterator[str]:
    """Yield in words what Discord shows with a message: files, what a bot has embedded, previews of links."""
    yield described("file", [{"name": file.filename} for file in message.attachments])
    for embed in message.embeds:
        yield described("embed", {"title": embed.title, "description": ""} | embed.to_dict(), message.content)
    for component in getattr(message, "components", ()):
        yield described("shown", component.to_dict(), message.content)


def _word(match: re.Match[str], guild: discord.Guild | None, names: Mapping[int, str]) -> str:
    if match["emoji"]:
        return f":{match['emoji']}:"
    if match["time"]:
        return moment(match["time"])
    if match["command"] or match["page"]:
        return match["command"] or f"#{match['page']}"
    if match["user"]:
        return f"@{names.get(int(match['user']), 'somebody')}"
    if match["role"]:
        role = guild.get_role(int(match["role"])) if guild else None
        return f"@{display_name(role.name if role else None, 'a role')}"
    channel = guild.get_channel_or_thread(int(match["channel"])) if guild else None
    return f"#{display_name(channel.name if channel else None, 'a channel')}"
