"""What a person said, read from the events Slack sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.surfaces.bots.slack.markup import mentioned
from memory.audience import PRIVATE, Place

SAID = frozenset({None, "file_share", "thread_broadcast", "me_message"})
"""Subtypes that somebody said something by; the others tell of edits, deletions, people who come and go …"""
NOBODY = frozenset({"USLACKBOT", ""})


@dataclass(frozen=True, slots=True)
class Written:
    """One message of one person, in Slack's markup."""

    team: str
    channel: str
    user: str
    """The id of who said it."""
    text: str
    ts: str
    """Tells it from all others in its channel."""
    thread: str | None = None
    """The ts of the message that its thread began with; None outside of threads."""
    private: bool = False
    mention: bool = False
    """Whether it names the bot."""
    to_another: bool = False
    """Whether it begins by naming somebody else."""
    follows_bot: bool = False
    """Whether the thread began with a message of the bot's."""
    files: tuple[Mapping[str, Any], ...] = ()

    @property
    def id(self) -> str:
        """One for both events that tell of it."""
        return f"{self.team}:{self.channel}:{self.ts}"

    @property
    def speaker(self) -> str:
        return user_name(self.team, self.user)

    @property
    def place(self) -> Place:
        """A thread is no place of its own: whoever may read the channel may read its threads."""
        return PRIVATE if self.private else place_of(self.team, self.channel)

    @property
    def conversation(self) -> str | None:
        """What the thread is as a conversation; None outside of threads, and in private, where all is one."""
        return None if self.private or not self.thread else conversation_of(self.place, self.thread)


def user_name(team: str, user: str) -> str:
    """Who a person of Slack is to Hachi."""
    return f"slack:{team}:{user}"


def place_of(team: str, channel: str) -> Place:
    return Place(("slack", team, channel))


def conversation_of(place: Place, thread: str) -> str:
    """The name of the conversation in a thread of a channel."""
    return Place((*place.path, thread)).key


def written_in(event: Mapping[str, Any], team: str, bot: str) -> Written | None:
    """What was said by a `message` or an `app_mention`; None where it is nobody's, a bot's, or an edit."""
    user = str(event.get("user") or "")
    if event.get("subtype") not in SAID or "edited" in event or event.get("hidden"):
        return None
    if event.get("bot_id") or event.get("bot_profile") or user == bot or user in NOBODY:
        return None
    text, ts = str(event.get("text") or ""), str(event["ts"])
    named = mentioned(text)
    first = named[0] if named and text.lstrip().startswith(f"<@{named[0]}") else bot
    thread = event.get("thread_ts")
    return Written(
        team=team,
        channel=str(event["channel"]),
        user=user,
        text=text,
        ts=ts,
        thread=str(thread) if thread else None,
        private=event.get("channel_type") == "im" or str(event["channel"]).startswith("D"),
        mention=event["type"] == "app_mention" or bot in named,
        to_another=first != bot,
        follows_bot=event.get("parent_user_id") == bot,
        files=tuple(event.get("files") or ()),
    )
