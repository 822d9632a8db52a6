"""Messages in the events that Slack sends."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.surfaces.bots.platform import without_call
from agent.surfaces.bots.slack.mrkdwn import mentioned_users
from memory.audience import PRIVATE, Place

_SUBTYPES = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes of messages that people write. Others are edits, deletions and notices."""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One message of one person, in Slack's markup."""

    team: str
    channel: str
    user: str
    text: str
    ts: str
    """Its id within the channel."""
    bot: str
    """The bot's own user id."""
    thread: str | None = None
    """The `ts` of the thread's first message."""
    private: bool = False
    mention: bool = False
    """Whether it mentions the bot."""
    to_others: bool = False
    """Whether it begins with a mention of somebody else."""
    follows_bot: bool = False
    """Whether the bot began the thread."""
    files: tuple[Mapping[str, Any], ...] = ()

    @property
    def origin(self) -> str:
        """Its id across platforms."""
        return origin_of(self.team, self.channel, self.ts)

    @property
    def session(self) -> tuple[str, str]:
        """The channel and the thread in which Slack shows what the bot does about it."""
        return self.channel, self.thread or self.ts

    @property
    def author(self) -> str:
        return user_name(self.team, self.user)

    @property
    def place(self) -> Place:
        """A thread is not a place: who may read a channel may read its threads."""
        return PRIVATE if self.private else place_of(self.team, self.channel)

    @property
    def conversation(self) -> str | None:
        """The thread in a channel; None elsewhere."""
        return None if self.private or not self.thread else Place((*self.place.path, self.thread)).key

    @property
    def text_without_call(self) -> str:
        return without_call(self.text, rf"<@{self.bot}(?:\|[^>]*)?>")


def origin_of(team: str, channel: str, ts: str) -> str:
    return f"slack:{team}:{channel}:{ts}"


def user_name(team: str, user: str) -> str:
    return f"slack:{team}:{user}"


def place_of(team: str, channel: str) -> Place:
    return Place(("slack", team, channel))


def deleted_message(event: Mapping[str, Any], team: str) -> str | None:
    """Return the origin of the message whose deletion the event tells; None for other events. A message with
    a thread below it is not told as deleted, but as changed to a `tombstone`."""
    changed, ts = event.get("message") or {}, None
    if event.get("subtype") == "message_deleted":
        ts = event.get("deleted_ts")
    elif event.get("subtype") == "message_changed" and changed.get("subtype") == "tombstone":
        ts = changed.get("ts")
    return origin_of(team, event["channel"], ts) if ts else None


def parse_event(event: Mapping[str, Any], team: str, bot: str) -> SlackMessage | None:
    """Parse a `message` or `app_mention` event. Returns None for edits, notices and messages of bots."""
    user, text, channel = event.get("user"), event.get("text") or "", event["channel"]
    if event.get("subtype") not in _SUBTYPES or user in (None, "", bot, "USLACKBOT"):
        return None
    if any(event.get(mark) for mark in ("edited", "hidden", "bot_id", "bot_profile")):
        return None
    mentioned = mentioned_users(text)
    return SlackMessage(
        team=team,
        channel=channel,
        user=user,
        text=text,
        ts=event["ts"],
        bot=bot,
        thread=event.get("thread_ts") or None,
        private=event.get("channel_type") == "im" or channel.startswith("D"),
        mention=event["type"] == "app_mention" or bot in mentioned,
        to_others=_to_others(text, bot),
        follows_bot=event.get("parent_user_id") == bot,
        files=tuple(event.get("files") or ()),
    )


def replies_to_bot(message: SlackMessage, thread: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the last line before the message is the bot's. `thread` has the lines of its thread.
    Lines of the author in between count as part of the message, unless they are to somebody else."""
    lines = [line for line in thread if float(line["ts"]) < float(message.ts)]
    for line in sorted(lines, key=lambda line: float(line["ts"]), reverse=True):
        text = line.get("text") or ""
        if line.get("user") != message.user:
            return bool(line.get("user") == message.bot)
        if _to_others(text, message.bot):
            return False
        if message.bot in mentioned_users(text):
            return True
    return False


def _to_others(text: str, bot: str) -> bool:
    first = next(iter(mentioned_users(text)), bot)
    return first != bot and text.lstrip().startswith(f"<@{first}")
