"""Messages in the events that Slack sends: who wrote them, where and to whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.surfaces.bots.platform import IncomingMessage, Line
from agent.surfaces.bots.slack.mrkdwn import mentioned_users
from memory.audience import PRIVATE, Place

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


def origin_of(team: str, channel: str, ts: str) -> str:
    return f"slack:{team}:{channel}:{ts}"


def user_name(team: str, user: str) -> str:
    return f"slack:{team}:{user}"


def place_of(team: str, channel: str | None) -> Place:
    """Return the place of a channel; direct messages and the App Home are private. A thread is not a place:
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


def parse_event(event: Mapping[str, Any], team: str, bot: str, *, flat: bool) -> IncomingMessage | None:
    """Parse a `message` or `app_mention` event. Returns None for edits, notices and messages of bots. The
    answer begins a thread, in which Slack streams, unless it is `flat`: in a channel where the bot answers
    everything."""
    user, text, channel = event.get("user"), event.get("text") or "", event["channel"]
    if event.get("subtype") not in _SUBTYPES or user in (None, "", bot, "USLACKBOT"):
        return None
    if any(event.get(mark) for mark in ("edited", "hidden", "bot_id", "bot_profile")):
        return None
    place, thread = place_of(team, channel), event.get("thread_ts") or None
    reply_in = thread or (None if flat and not place.private else event["ts"])
    attached = [
        one for one in event.get("attachments") or () if one.get("is_share") or one.get("is_msg_unfurl")
    ]
    files = tuple(event.get("files") or ())
    source = Source(
        *(team, channel, user, event["ts"], bot, text, thread, reply_in), files=files, shared=tuple(attached)
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
