"""What comes in and what goes out of a turn: frozen records."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.tracing.trace import Usage
from memory.audience import PRIVATE, Audience, Place
from memory.records import Decision, Role

MAX_MESSAGE = 100_000
"""Characters of one incoming message that are read; far more than any chat lets a person send."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """Something said to the companion."""

    text: str
    user: str | None
    """Who speaks; None is anonymous: no memory is read and none written."""
    sent_at: datetime
    place: Place = PRIVATE
    """Where; private by default."""
    conversation: str | None = None
    """Unset: the user's private conversation, or the one of the place."""
    author: str | None = None
    """The name to show for the user, where it is not the id."""
    instructions: str = ""
    """What the program asks for through which the person writes; shown to the model as its wish."""
    earlier: tuple[tuple[Role, str], ...] = ()
    """What that program says was said before, oldest first; shown where the transcript knows of nothing."""

    @property
    def audience(self) -> Audience:
        return Audience.of(self.user, self.place)

    @property
    def conversation_id(self) -> str:
        if self.conversation:
            return self.conversation
        return f"dm:{self.user}" if self.place.private else self.place.key

    @property
    def speaker(self) -> str:
        return self.author or self.user or "someone"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that was called in a turn."""

    name: str
    arguments: dict[str, Any] | str
    """As the model gave them; the raw text where they were no JSON object."""
    ok: bool
    result: str
    """The text the model got back."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the user gets, and what happened on the way."""

    message: str
    memories: tuple[Decision, ...]
    """What this turn remembered: by the `remember` tool, and, once settled, by the answer's memories[]."""
    tools: tuple[ToolCall, ...]
    trace_id: str
    model: str
    calls: int
    """Model calls that were made."""
    message_id: str | None = None
    """The reply's id in the transcript; None when anonymous."""
    usage: Usage = field(default_factory=Usage)
    """Of all calls together; zeros where the model's server did not count each of them."""
