"""Messages on Slack: who wrote them, where, to whom, and what they say."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments.attachment import PERCEIVED, Attachment, display_name
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
    quoted,
    without_call,
)
from agent.surfaces.bots.slack.access import API_ERRORS, attachment_of
from agent.surfaces.bots.slack.rendering import mentioned_users, readable_text, unnamed
from memory.audience import PRIVATE, Place
from memory.people.places import Listening

log = logging.getLogger("hachi.slack")


_MISSING = frozenset({"thread_not_found", "message_not_found"})
"""Errors where a message is gone."""
_HIDDEN = frozenset({"channel_not_found", "not_in_channel", "missing_scope"})
"""Errors where the bot may not read."""
KEEPS = timedelta(days=1)
"""A message that disappears sooner was deleted by somebody: no workspace keeps messages for less than a
day."""
_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write. Others are edits, deletions and notices."""


@dataclass(frozen=True, slots=True)
class Source:
    """What an event tells of a message."""

    team: str
    channel: str
    user: str
    ts: str
    """Its id within the channel."""
    bot: str
    """The bot's own user id."""
    event: Mapping[str, Any] = field(default_factory=dict)
    """What it holds: `text`, `files`, `attachments` and `blocks`."""
    thread: str | None = None
    """The `ts` of the first message of the thread that it is in."""
    reply_in: str | None = None
    """The thread in which it is answered; None in the channel."""

    @property
    def session(self) -> tuple[str, str]:
        """The channel and the thread in which Slack shows what the bot does about it."""
        return self.channel, self.reply_in or self.ts


def source_of(team: str) -> str:
    """Return how the ids of the workspace's users and messages begin."""
    return f"slack:{team}"


def origin_of(team: str, channel: str, ts: str) -> str:
    return f"{source_of(team)}:{channel}:{ts}"


def user_name(team: str, user: str) -> str:
    return f"{source_of(team)}:{user}"


def place_of(team: str, channel: str | None) -> Place:
    """Return the place of a channel; direct messages are private. A thread is not a place:
    who may read a channel may read its threads."""
    private = not channel or channel.startswith("D")
    return PRIVATE if private else Place(("slack", team, str(channel)))


def deleted_message(event: Mapping[str, Any], team: str) -> str | None:
    """Return the origin of the message whose deletion the event tells; None for other events. A message with
    a thread below it is not told as deleted, but as changed to a `tombstone`."""
    changed, ts = event.get("message") or {}, None
    if event.get("subtype") == "message_deleted":
        ts = event.get("deleted_ts")
    elif event.get("subtype") == "message_changed" and changed.get("subtype") == "tombstone":
        ts = changed.get("ts")
    return origin_of(team, event["channel"], ts) if ts else None


def as_edited(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event of an edited message as if it were written now; others as they are. Slack tells of a
    message as changed too where it has added a preview of a link, or a thread below it."""
    new, before = event.get("message") or {}, event.get("previous_message") or {}
    if event.get("subtype") != "message_changed" or new.get("text") == before.get("text"):
        return event
    return {**new, "type": "message", "channel": event["channel"]}


def sent_at(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


def parse_event(event: Mapping[str, Any], team: str, bot: str, *, flat: bool) -> IncomingMessage | None:
    """Parse a `message` or `app_mention` event. Returns None for notices and messages of bots. The
    answer begins a thread, unless it is `flat`: in a channel where the bot answers
    everything."""
    user, channel = event.get("user"), event["channel"]
    if event.get("subtype") not in _SUBTYPES or user in (None, "", bot, "USLACKBOT"):
        return None
    if any(event.get(mark) for mark in ("hidden", "bot_id", "bot_profile")):
        return None
    place, thread = place_of(team, channel), event.get("thread_ts") or None
    reply_in = thread or (None if flat and not place.private else event["ts"])
    source = Source(team, channel, user, event["ts"], bot, event, thread, reply_in)
    line = line_of(event, team, bot)
    return IncomingMessage(
        user_name(team, user),
        place,
        None if place.private or not reply_in else Place((*place.path, reply_in)).key,
        source,
        origin_of(team, channel, event["ts"]),
        addressed=place.private or event["type"] == "app_mention" or line.addressed,
        to_others=line.to_others,
        in_thread=bool(thread),
        follows_bot=event.get("parent_user_id") == bot,
        version=str((event.get("edited") or {}).get("ts", "")),
    )


def line_of(event: Mapping[str, Any], team: str, bot: str) -> NearbyMessage:
    """Return who wrote a message, and to whom: to others if it begins by mentioning somebody else."""
    text, user = event.get("text") or "", event.get("user")
    mentioned = mentioned_users(text)
    first = next(iter(mentioned), bot)
    return NearbyMessage(
        "" if user == bot else user_name(team, str(user or event.get("bot_id"))),
        bot in mentioned,
        first != bot and text.lstrip().startswith(f"<@{first}"),
        origin_of(team, str(event.get("channel")), str(event.get("ts"))),
        event,
    )


def _files_of(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the files of a message and of those that it forwards."""
    shared = [one for one in data.get("attachments") or () if one.get("is_share") or one.get("is_msg_unfurl")]
    return [*(data.get("files") or ()), *(file for one in shared for file in _files_of(one))]


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    zone: str | None


@dataclass(eq=False)
class Reader:
    client: AsyncWebClient
    label: Label
    listening: Callable[[Place], Awaitable[Listening]]
    clock: Callable[[], datetime]
    bot: str = ""
    """The bot's own user id."""

    def __post_init__(self) -> None:
        self._people = Hourly(self._ask_who, self.clock)
        self._channels = Hourly(self._ask_what, self.clock)

    async def read(self, message: IncomingMessage) -> Content:
        source: Source = message.source
        event = source.event
        attached = [await attachment_of(self.client, one) for one in event.get("files") or ()]
        forwarded = [await attachment_of(self.client, one) for one in _files_of(event)[len(attached) :]]
        attached += [one for one in forwarded if one.kind in PERCEIVED]  # the text names the others
        body = without_call(event.get("text") or "", rf"<@{source.bot}(?:\|[^>]*)?>")
        text = await self._readable({**event, "text": body}, source, message.place, whole=False)
        author = await self._people.get(source.user)
        name = author.name if author else source.user
        called = f"@{await self.name(source.bot)}" if not (text or attached) else ""
        channel = None if message.place.private else await self._channels.get(source.channel)
        place = channel and f"#{display_name(channel, 'a channel')}"
        return Content(name, text or called, attached, place or "", author.zone if author else None)

    async def files_of(self, line: NearbyMessage) -> list[Attachment]:
        files = _files_of(line.source)
        return [await attachment_of(self.client, one) for one in files]

    async def may_read(self, user: str, places: Sequence[Place]) -> Mapping[Place, str]:
        """Name the channels that the person may read: those they are in, and for a member of the workspace
        who is no guest its public ones."""
        team, id = user.split(":")[1:]
        names = dict.fromkeys(places, "")
        person = (await self.client.users_info(user=id))["user"]
        if person.get("deleted"):
            return names
        joined: dict[str, Mapping[str, Any]] = {}
        kinds = "public_channel,private_channel,mpim"
        async for page in await self.client.users_conversations(user=id, types=kinds, limit=200):
            joined |= {channel["id"]: channel for channel in page["channels"]}
        guest = any(person.get(f"is_{kind}") for kind in ("restricted", "ultra_restricted", "stranger"))
        for place in [place for place in places if place.path[:2] == ("slack", team)]:
            channel = joined.get(place.path[2])
            if channel is None and not guest and person.get("team_id") == team:
                channel = await self._public(place.path[2])
            if channel is not None:
                names[place] = f"#{display_name(channel.get('name'), 'a channel')}"
        return names

    async def _public(self, id: str) -> Mapping[str, Any] | None:
        """Return a channel that all members of the workspace may read; None for any other."""
        try:
            channel: Mapping[str, Any] = (await self.client.conversations_info(channel=id))["channel"]
        except SlackApiError as error:
            if error.response.get("error") in _HIDDEN:
                return None
            raise
        return channel if channel.get("is_channel") and channel.get("is_private") is False else None

    async def quote(self, line: NearbyMessage, message: IncomingMessage) -> str:
        source: Source = message.source
        text = await self._readable(line.source, source, message.place)
        return f"{await self._author(line.source, source, message.place)}: {text}" if text else ""

    async def _readable(
        self, message: Mapping[str, Any], source: Source, place: Place, *, whole: bool = True
    ) -> str:
        """Return in words what a message says, with names instead of ids, with forwarded messages and blocks;
        as a `whole` also with files, and what an app or a link shows."""
        text = str(message.get("text") or "")
        files = [await attachment_of(self.client, one) for one in message.get("files") or () if whole]
        blocks = [one for one in message.get("blocks") or () if not text or one.get("type") != "rich_text"]
        parts = [
            text,
            described("shown", blocks, text),
            described("file", [{"name": one.name or "a file"} for one in files]),
        ]
        for one in message.get("attachments") or ():
            if one.get("is_share") or one.get("is_msg_unfurl"):
                if words := await self._readable(one, source, place):
                    parts.append(quoted("forwarded from", await self._author(one, source, place), words))
            elif whole:
                parts.append(described("shown", one, text))
        text = "\n".join(filter(None, parts))
        return readable_text(text, await self._names(text, source, place))

    async def _author(self, message: Mapping[str, Any], source: Source, place: Place) -> str:
        """Return what who wrote a message is called: a person, or an app by the name that it gives itself."""
        if user := str(message.get("user") or message.get("author_id") or ""):
            return await self._label(user, source, place)
        profile = message.get("bot_profile") or {}
        name = message.get("username") or profile.get("name") or message.get("author_name")
        return display_name(name, "somebody")

    async def _label(self, user: str, source: Source, place: Place) -> str:
        name = await self.name(user)
        return name if user == source.bot else await self.label(name, user_name(source.team, user), place)

    async def _names(self, text: str, source: Source, place: Place) -> dict[str, str]:
        """Return what the people, channels and groups are called that the text names by id alone."""
        people, channels = list(dict.fromkeys(mentioned_users(text))), list(dict.fromkeys(unnamed(text)))
        lookups = (*(self._label(one, source, place) for one in people), *map(self._channels.get, channels))
        names = await asyncio.gather(*lookups)
        return {id: name for id, name in zip((*people, *channels), names, strict=True) if name}

    async def _ask_what(self, id: str) -> str | None:
        """Return the name of a channel, or the handle of a group of people."""
        try:
            if id.startswith("S"):
                groups = (await self.client.usergroups_list())["usergroups"]
                return next((str(one["handle"]) for one in groups if one["id"] == id), None)
            return str((await self.client.conversations_info(channel=id))["channel"]["name"])
        except API_ERRORS as error:
            log.info("it is not known what %s is called: %s", id, error)
            return None

    async def fetch(self, origin: str) -> IncomingMessage | None:
        """Read a message again; None if it is deleted or no person wrote it. Raises Unreadable, and errors of
        Slack's API."""
        _, team, channel, ts = origin.split(":")
        try:
            page = await self.client.conversations_replies(
                channel=channel, ts=ts, oldest=ts, latest=ts, inclusive=True, limit=1
            )
        except SlackApiError as error:
            code = error.response.get("error")
            if code not in _MISSING | _HIDDEN:
                raise
            if code in _HIDDEN or self.clock() - sent_at(ts) > KEEPS:
                raise Unreadable from error
            return None
        line = next((line for line in page["messages"] if line["ts"] == ts), None)
        if line is None:
            return None
        flat = await self.listening(place_of(team, channel)) == "everything"
        return parse_event({**line, "type": "message", "channel": channel}, team, self.bot, flat=flat)

    async def thread_of(self, channel: str, ts: str) -> str | None:
        """Return the thread that a message is in or has begun; None if there is none any more."""
        try:
            page = await self.client.conversations_replies(channel=channel, ts=ts, limit=1)
        except API_ERRORS as error:
            log.warning("cannot find a thread of %s: %s", channel, error)
            return None
        return next((line.get("thread_ts") for line in page["messages"]), None)

    async def thread(self, message: IncomingMessage) -> Thread:
        source: Source = message.source
        lines: list[NearbyMessage] = []
        async for page in await self.client.conversations_replies(
            channel=source.channel, ts=str(source.thread), latest=source.ts, limit=1_000
        ):
            earlier = [line for line in page["messages"] if float(line["ts"]) < float(source.ts)]
            lines += [line_of({**one, "channel": source.channel}, source.team, source.bot) for one in earlier]
            lines[1:] = lines[1:][-MAX_THREAD:]
        return Thread(lines)

    async def name(self, user: str) -> str:
        """Return the person's display name; the id if Slack does not know it."""
        person = await self._people.get(user)
        return person.name if person else user

    async def _ask_who(self, user: str) -> _Person | None:
        try:
            person = (await self.client.users_info(user=user)).get("user") or {}
        except API_ERRORS as error:
            log.warning("cannot get the name of %s: %s", user, error)
            return None
        profile = person.get("profile") or {}
        names = (profile.get("display_name"), profile.get("real_name"), person.get("name"))
        return _Person(
            display_name(next(filter(str.strip, filter(None, names)), None), user), person.get("tz")
        )
