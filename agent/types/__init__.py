"""The input and output of a turn, and the events of its stream, as frozen records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic

from typing_extensions import TypeVar

from agent.types.client import CallItem, ClientTurn, Item
from agent.types.labels import account_labels
from memory.audience import PRIVATE, Audience, Place
from memory.records import Decision, ForgetCandidate, Hit, Memory
from tools.proposed_call import Confirm

T = TypeVar("T", default=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as counted by the model's server; 0 if it did not count them."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Occasion:
    """The reason for a turn that no message began. The model may stay silent."""

    text: str
    """Shown to the model in place of a message."""
    messages: tuple[str, ...]
    """The ids of the person's messages that led to it, at least one. Forgetting one forgets the reply."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A message to the companion."""

    text: str
    user: str | None
    """The speaker's id; None is anonymous: no memory is read or written."""
    sent_at: datetime
    place: Place = PRIVATE
    conversation: str | None = None
    """Default: the user's private conversation, or the one of the place."""
    author: str | None = None
    """The speaker's display name; default: the id."""
    instructions: str = ""
    """Instructions of the calling program; the model sees them quoted, as its wishes."""
    origins: tuple[str, ...] = ()
    """The ids of the chat platform's messages that make up this one. `ConversationService.forget_sent` finds
    it by each of them."""
    client: ClientTurn | None = None
    """The data that a client of a chat API sends with the message."""
    occasion: Occasion | None = None
    """Set if no message began the turn; `text` then says briefly what it is about."""
    confirm: Confirm | None = None
    """Asks the person before a call that changes something. None: such tools are not offered."""
    unkept: bool = False
    """Whether the speaker wants nothing stored: then the request is anonymous and leaves no trace."""
    linked: Mapping[str, str] = field(default_factory=dict)
    """Owner keys of the speaker's linked accounts, with the accounts' ids; only in private."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Owner keys of the places that the speaker may read in private, with the names of the places."""

    @property
    def audience(self) -> Audience:
        """Return what this account may read in the place, without linked accounts: conversations,
        documents."""
        return Audience.of(self.user, self.place)

    @property
    def person(self) -> Audience:
        """Return the same, including the linked accounts."""
        return Audience.of(self.user, self.place, self.linked)

    @property
    def reader(self) -> Audience:
        """Return what searches may read: also the places in `reads`. Each key has a label for the model."""
        return Audience.of(self.user, self.place, {**account_labels(self.linked), **self.reads})

    @property
    def conversation_id(self) -> str:
        if self.conversation:
            return self.conversation
        return f"dm:{self.user}" if self.place.private else self.place.key

    @property
    def speaker(self) -> str:
        return self.author or self.user or "someone"


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A request whose text is checked, and stored unless it is anonymous."""

    request: TurnRequest
    id: str | None
    """The id in the transcript; None when anonymous."""
    history: tuple[Item, ...] | None = None
    """The conversation before it, as the client sent it; None if the transcript has it."""
    continues: bool = False
    """Whether the transcript's messages come between the client's history and this message."""
    sources: frozenset[str] = frozenset()
    """The ids of the rows that the stored calls before it rest on."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call: its arguments and its result."""

    name: str
    arguments: dict[str, Any] | str
    """As the model wrote them; the raw text where that was not a JSON object."""
    ok: bool
    result: str
    """The text that the model received."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """The reply to the user, and what happened in the turn. `T` is the type of the requested answer."""

    message: str
    memories: tuple[Decision, ...]
    """The decisions of the `remember` tool in this turn and, once settled, on its memories[]."""
    tools: tuple[ToolCall, ...]
    trace_id: str
    model: str
    calls: int
    """The number of model calls."""
    message_id: str | None = None
    """The reply's id in the transcript; None when anonymous."""
    conversation: str | None = None
    """The id of its conversation; None when anonymous."""
    forget: tuple[ForgetCandidate, ...] | None = None
    """Candidates that the person may have asked to forget. Ask them, then pass the confirmed ones to
    `pet.memories.forget_confirmed`. Empty if nothing that they stated matches; None if they did not ask."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of all calls; zeros if the server did not count every call."""
    shown: tuple[Memory, ...] = ()
    """The facts in the prompt."""
    found: tuple[Hit, ...] = ()
    """What the model received from searches in memory, each hit once, without the messages around it. In a
    turn without a search: the memories that it listed."""
    client_calls: tuple[CallItem, ...] = ()
    """Calls of the client's tools. The turn continues when the client sends their results."""
    cut: bool = False
    """Whether the answer was cut off: the model had no tokens left, or its provider's filter stopped it."""
    value: T = None  # type: ignore[assignment]
    """The answer as the requested type; `message` is then its JSON."""


@dataclass(frozen=True, slots=True)
class TextWritten:
    """A piece of the reply."""

    text: str
    """The piece's text."""


@dataclass(frozen=True, slots=True)
class ThoughtWritten:
    """A piece of the model's thoughts, if its server separates them from the answer."""

    text: str
    """The piece's text."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any] | str
    """As the model wrote them; the raw text where that was not a JSON object."""


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool has answered."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class MemoryDecided:
    """A fact was remembered, or ignored."""

    decision: Decision
    """A decision of the tool `remember` or, in a turn that settles, on the answer's memories."""


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The turn is over, and its reply is stored."""

    reply: Reply[Any]
    """The reply, which is stored."""


StreamEvent = TextWritten | ThoughtWritten | ToolStarted | ToolEnded | MemoryDecided | TurnDone
