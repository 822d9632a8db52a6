"""Messages on Discord: who wrote them, where, to whom, and what they say; and those that came while there was
no session."""

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import discord

from agent.surfaces.bots.attachments import Attachment, display_name
from agent.surfaces.bots.platform import MAX_QUOTED, Content, IncomingMessage, Label, quoted, without_call
from memory.audience import PRIVATE, Place

log = logging.getLogger("hachi.discord")


ROOT = Place(("discord",))
"""Contains every place on Discord."""
API_ERRORS = (discord.DiscordException, OSError)
"""The exceptions that calls of Discord's API raise."""
_KINDS = (discord.MessageType.default, discord.MessageType.reply)
"""Other kinds are notices: somebody joined, a message was pinned."""
_TOKEN = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")


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
    told = {key: value for key, value in data.items() if value is not None or key == "edited_timestamp"}
    message: discord.Message = channel._state.create_message(channel=channel, data={"mentions": [], **told})
    return message


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
        event=_event(message),
    )


def _event(message: discord.Message) -> dict[str, Any]:
    """Return what Discord tells of a message, as far as it is read here: discord.py does not keep it."""
    command = message.interaction_metadata
    asked = {"id": command.id, "type": 2, "authorizing_integration_owners": {}} if command else {}
    return {
        "id": message.id,
        "type": message.type.value,
        "timestamp": message.created_at.isoformat(),
        "edited_timestamp": message.edited_at.isoformat() if message.edited_at else None,
        "content": message.content,
        "author": _person(message.author),
        "mentions": [*map(_person, message.mentions)],
        "mention_roles": message.raw_role_mentions,
        "mention_everyone": message.mention_everyone,
        "attachments": [file.to_dict() for file in message.attachments],
        **dict.fromkeys(("tts", "pinned"), False),
        "embeds": [],
        **({"interaction_metadata": asked | {"user": _person(command.user)}} if command else {}),
    }


def _person(one: Any) -> dict[str, Any]:
    return {"id": one.id, "username": one.name, "global_name": one.display_name, "discriminator": "0"}


def asked(message: discord.Message, place: Place, me: Any) -> IncomingMessage | None:
    """Return the question of a person that the bot has posted for them; None for any other message."""
    command = message.interaction_metadata
    if command is None or message.author.id != me.id:
        return None
    name, _, question = message.content.removeprefix("**").partition(":** ")
    return IncomingMessage(
        user_name(command.user.id),
        place,
        source=message,
        origin=origin_of(message.channel.id, message.id),
        content=Content(display_name(command.user.display_name, name), question),
        event=_event(message),
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
        quotes=(origin_of(replied.channel.id, replied.id),) if replied else (),
        replies_to=f"{names[replied.author.id]}: {answered[:MAX_QUOTED]}" if replied else "",
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


MOST_MESSAGES = 100
"""Messages of one channel that are caught up."""
DM_SHARD = 0
"""The shard to which Discord sends direct messages."""


async def missed_messages(
    client: discord.Client, shard: int, since: datetime, private: Sequence[str]
) -> AsyncIterator[discord.Message]:
    """Yield what was written since then in the servers of a shard, and in the `private` channels, each
    channel's in order."""
    after = discord.utils.time_snowflake(since)
    channels: list[Any] = []
    for guild in client.guilds:
        if guild.shard_id == shard:
            channels += [*guild.text_channels, *guild.voice_channels, *guild.threads]
    wanted = [(one.id, one) for one in channels if (one.last_message_id or 0) > after]
    for id, known in [*wanted, *((int(id), client.get_channel(int(id))) for id in reversed(private))]:
        try:
            channel: Any = known or await client.fetch_channel(id)
            # discord.py's own history ends at the first message that it cannot read
            written = await client.http.logs_from(id, MOST_MESSAGES, after=after)
        except API_ERRORS as error:
            log.warning("what was written in channel %s meanwhile is not read: %s", id, error)
            continue
        for one in reversed(written):
            try:
                message = as_message(channel, one)
            except Exception as error:
                log.warning("a message in channel %s is not read: %r", id, error)
            else:
                yield message
