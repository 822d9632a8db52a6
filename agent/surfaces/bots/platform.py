"""What the turns of a chat need of its platform, and what a platform tells of its messages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.surfaces.bots.attachments import Attachment
from memory.audience import Place
from memory.people.places import Listening
from memory.records import Decision, ForgetCandidate

ToForget = Sequence[ForgetCandidate] | None
"""What a person may mean who asked to forget something; None if they did not ask."""


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message to answer. Its content is read when its turn starts."""

    user: str
    """The author's id across platforms: ``discord:1234``."""
    place: Place
    conversation: str | None = None
    """None selects the user's private conversation, or that of the place."""
    source: Any = None
    """The platform's own message, needed to read and answer it."""
    origin: str = ""
    """The message's id across platforms: ``discord:1234``."""

    @property
    def queue(self) -> str:
        if self.conversation is not None:
            return self.conversation
        return f"dm:{self.user}" if self.place.private else self.place.key


@dataclass(frozen=True, slots=True)
class Content:
    author: str
    """The author's name, as other people see it."""
    text: str
    attachments: Sequence[Attachment] = ()
    zone: str | None = None
    """The author's time zone, if the platform tells it: an IANA name."""


class ReplyView(Protocol):
    """The messages in which one reply appears."""

    async def show(self, text: str) -> None:
        """Show the whole text so far. May raise."""

    async def finish(self, text: str, new: Sequence[Decision] = (), forget: ToForget = None) -> None:
        """Show the final text, receipts of the memories that are new and, if the person asked to forget
        something, the question what they meant. May raise; it is then called again."""


class Platform(Protocol):
    """The operations of a chat platform that a turn needs."""

    busy_seconds: float
    """How long `set_busy` lasts before it has to be repeated."""

    async def read(self, message: IncomingMessage) -> Content: ...

    async def set_busy(self, message: IncomingMessage, busy: bool) -> None:
        """Show or hide a typing indicator or a status. May raise."""

    def reply_to(self, message: IncomingMessage) -> ReplyView: ...


def without_call(text: str, bot: str) -> str:
    """Return the text without a mention of the bot at its start or end. `bot` is a pattern that matches its
    mentions."""
    return re.sub(rf"^(?:\s*(?:{bot})[\s,:]*)+|(?:\s*(?:{bot}))+\s*$", "", text)


def should_answer(listening: Listening, *, addressed: bool, to_others: bool) -> bool:
    """Return whether to answer. `addressed`: the message mentions the bot, replies to it or is private.
    `to_others`: it names somebody else."""
    return listening != "nothing" and (addressed or (listening == "everything" and not to_others))
