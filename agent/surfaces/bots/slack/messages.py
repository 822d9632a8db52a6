"""Messages on Slack: who wrote them, where, to whom, and what they say."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.surfaces.bots.attachments import display_name
from agent.surfaces.bots.platform import (
    MAX_QUOTED,
    Content,
    Hourly,
    IncomingMessage,
    Label,
    Line,
    Unreadable,
    quoted,
    without_call,
)
from agent.surfaces.bots.slack.client import API_ERRORS, attachment_of
from agent.surfaces.bots.slack.rendering import mentioned_users, plain_text
from memory.audience import PRIVATE, Place
from memory.people.places import Listening

log = logging.getLogger("hachi.slack")


_MISSING = frozenset({"thread_not_found", "message_not_found"})
"""Errors where a message is gone."""
_HIDDEN = frozenset({"channel_not_found", "not_in_channel", "missing_scope"})
"""Errors where the bot may not read."""
KEEPS = timedelta(days=1)
"""What is gone before, somebody deleted: the shortest time for which a workspace keeps messages is a day."""
_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write. Others are edits, deletions and notices."""


@dataclass(frozen=True, slots=True)
class Source:
    """What an event tells of a message, in Slack's markup."""

    team: str
    channel: str
    user: str
    ts: str
    """Its id within the channel."""
    bot: str
    """The bot's own user id."""
    text: str = ""
    thread: str | None = None
    """The `ts` of the first message of the thread that it is in."""
    reply_in: str | None = None
    """The thread in which it is answered; None in the channel."""
    files: tuple[Mapping[str, Any], ...] = ()
    shared: tuple[Mapping[str, Any], ...] = ()
    """The messages that it forwards."""

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
    user, text, channel = event.get("user"), event.get("text") or "", event["channel"]
    if event.get("subtype") not in _SUBTYPES or user in (None, "", bot, "USLACKBOT"):
        return None
    if any(event.get(mark) for mark in ("hidden", "bot_id", "bot_profile")):
        return None
    place, thread = place_of(team, channel), event.get("thread_ts") or None
    reply_in = thread or (None if flat and not place.private else event["ts"])
    attached = [
        one for one in event.get("attachments") or () if one.get("is_share") or one.get("is_msg_unfurl")
    ]
    files = tuple(event.get("files") or ())
    source = Source(
        team, channel, user, event["ts"], bot, text, thread, reply_in, files=files, shared=tuple(attached)
    )
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


def line_of(event: Mapping[str, Any], team: str, bot: str) -> Line:
    """Return who wrote a message, and to whom: to others if it begins by mentioning somebody else."""
    text, user = event.get("text") or "", event.get("user")
    mentioned = mentioned_users(text)
    first = next(iter(mentioned), bot)
    return Line(
        "" if user == bot else user_name(team, str(user)),
        bot in mentioned,
        first != bot and text.lstrip().startswith(f"<@{first}"),
    )


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

    async def read(self, message: IncomingMessage, *, begins: bool) -> Content:
        """In a thread of others that a conversation begins in, the message replies to the thread's first."""
        source: Source = message.source
        first = await self._first(source) if begins and source.thread else {}
        said = str(first.get("text") or "")
        people = [source.user, *mentioned_users(source.text), *_named_in(source.shared)]
        people += [str(first.get("user")), *mentioned_users(said)] if said else []
        names = await self._names(people, source, message.place)
        text = without_call(source.text, rf"<@{source.bot}(?:\|[^>]*)?>")
        text = "\n".join(filter(None, (plain_text(text, names), *_forwarded(source, names))))
        if not text and not source.files:
            text = f"@{names.get(source.bot, 'Hachi')}"
        author, answered = await self._people.get(source.user), plain_text(said, names)
        return Content(
            author.name if author else source.user,
            text,
            [attachment_of(self.client, file) for file in source.files],
            author.zone if author else None,
            (origin_of(source.team, source.channel, first["ts"]),) if answered else (),
            f"{names[str(first['user'])]}: {answered[:MAX_QUOTED]}" if answered else "",
        )

    async def fetch(self, origin: str) -> IncomingMessage | None:
        """Read a message again; None if it is gone or no person wrote it. Raises Unreadable, and what Slack's
        API raises."""
        _, team, channel, ts = origin.split(":")
        try:
            found = await self.client.conversations_replies(
                channel=channel, ts=ts, oldest=ts, latest=ts, inclusive=True, limit=1
            )
        except SlackApiError as error:
            code = error.response.get("error")
            if code not in _MISSING | _HIDDEN:
                raise
            if code in _HIDDEN or self.clock() - sent_at(ts) > KEEPS:
                raise Unreadable from error
            return None
        line = next((line for line in found["messages"] if line["ts"] == ts), None)
        if line is None:
            return None
        flat = await self.listening(place_of(team, channel)) == "everything"
        return parse_event({**line, "type": "message", "channel": channel}, team, self.bot, flat=flat)

    async def _names(self, people: Sequence[str], source: Source, place: Place) -> dict[str, str]:
        """Return what these people are called in the place."""
        asked = list(dict.fromkeys(people))
        names = dict(zip(asked, await asyncio.gather(*map(self.name, asked)), strict=True))
        for user, name in names.items():
            if user != source.bot:
                names[user] = await self.label(name, user_name(source.team, user), place)
        return names

    async def _first(self, source: Source) -> Mapping[str, Any]:
        """Return the first message of the thread; nothing if Slack does not tell it, or it is the source."""
        try:
            thread = await self.client.conversations_replies(
                channel=source.channel, ts=str(source.thread), limit=1
            )
        except API_ERRORS as error:
            log.warning("cannot read a thread of %s: %s", source.channel, error)
            return {}
        return next((line for line in thread["messages"] if line["ts"] != source.ts), {})

    async def thread_of(self, channel: str, ts: str) -> str | None:
        """Return the thread that a message is in or has begun; None if there is none any more."""
        try:
            said = await self.client.conversations_replies(channel=channel, ts=ts, limit=1)
        except API_ERRORS as error:
            log.warning("cannot find a thread of %s: %s", channel, error)
            return None
        return next((line.get("thread_ts") for line in said["messages"]), None)

    async def thread(self, message: IncomingMessage) -> list[Line]:
        """Return the lines before the message in its thread."""
        source: Source = message.source
        lines: list[Line] = []
        async for page in await self.client.conversations_replies(
            channel=source.channel, ts=str(source.thread), latest=source.ts, limit=1_000
        ):
            said = [line for line in page["messages"] if float(line["ts"]) < float(source.ts)]
            lines += [line_of(line, source.team, source.bot) for line in said]
        return lines

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


def _named_in(shared: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ids of who wrote forwarded messages, and of whom these mention."""
    for one in shared:
        yield from filter(None, (one.get("author_id"),))
        yield from mentioned_users(one.get("text") or "")


def _forwarded(source: Source, names: Mapping[str, str]) -> Iterator[str]:
    for shared in source.shared:
        author = display_name(shared.get("author_name"), "somebody")
        if text := plain_text(shared.get("text") or "", names):
            yield quoted("forwarded from", names.get(str(shared.get("author_id")), author), text)
