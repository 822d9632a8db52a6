"""The input and output of a turn, as frozen records."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic

from typing_extensions import TypedDict, TypeVar

from agent.types.arguments import (
    Argument,
    Name,
    Seconds,
    ShortTexts,
    Text,
    Turns,
    Where,
    async_function,
    model_or_name,
    reads_of,
)
from agent.types.client import CLIENT_TURN, CallItem, ClientTurn, Item
from memory.audience import PRIVATE, Audience, Place
from memory.records import Decision, ForgetCandidate, Hit, Memory
from tools.proposed_call import Confirm

if TYPE_CHECKING:
    from agents.models.interface import Model
else:  # the SDK takes seconds to import
    Model = Any

T = TypeVar("T", default=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the model's server counted them; 0 where it did not say."""

    input: int = 0
    output: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Occasion:
    """The reason for a turn that no message began. The model may stay silent."""

    text: str
    """Shown to the model in place of a message."""
    messages: tuple[str, ...]
    """The ids of the person's messages that it follows, one at least: the reply goes with each."""


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
    """Instructions of the calling program; the model sees them quoted, as that program's wishes."""
    origins: tuple[str, ...] = ()
    """The ids of the messages of a chat platform that make up this one. `ConversationService.forget_sent`
    finds it by each of them."""
    client: ClientTurn | None = None
    """What a client of a chat API sends beside the message."""
    occasion: Occasion | None = None
    """Set where no message began the turn: then `text` says in short what it is about."""
    confirm: Confirm | None = None
    """Asks the person about a call that changes something; None: no such tool is offered."""
    unkept: bool = False
    """Whether the speaker wants nothing of theirs kept: then the request is anonymous, and no trace is."""
    linked: Mapping[str, str] = field(default_factory=dict)
    """The owner keys of the speaker's linked accounts, for a request in private, with the accounts' ids."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """The owner keys of the places that they may read in private, with what the places are called."""

    @property
    def audience(self) -> Audience:
        """Return what may be read of this account's, or in this place: conversations, documents."""
        return Audience.of(self.user, self.place)

    @property
    def person(self) -> Audience:
        """Return the same with the linked accounts."""
        return Audience.of(self.user, self.place, self.linked)

    @property
    def reader(self) -> Audience:
        """Return what searches may read: also the places that are read in private."""
        return Audience.of(self.user, self.place, {**self.linked, **self.reads})

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
    """A request whose text is checked and, unless it is anonymous, stored."""

    request: TurnRequest
    id: str | None
    """In the transcript; None when anonymous."""
    history: tuple[Item, ...] | None = None
    """The conversation before it as the client has it; None where the transcript has it."""
    continues: bool = False
    """Whether the conversation in the transcript comes between the client's history and it."""
    sources: frozenset[str] = frozenset()
    """The ids of what the stored calls before it were written from."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: what the model passed and was answered."""

    name: str
    arguments: dict[str, Any] | str
    """As the model wrote them; the raw text where that was not a JSON object."""
    ok: bool
    result: str
    """The text that the model received."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """The reply to the user, and what happened on the way. `T` is the type that was asked for as answer."""

    message: str
    memories: tuple[Decision, ...]
    """What this turn remembered by the `remember` tool and, once settled, by the answer's memories[]."""
    tools: tuple[ToolCall, ...]
    trace_id: str
    model: str
    calls: int
    """How many model calls were made."""
    message_id: str | None = None
    """The reply's id in the transcript; None when anonymous."""
    conversation: str | None = None
    """The id of its conversation; None when anonymous."""
    forget: tuple[ForgetCandidate, ...] | None = None
    """What the person may have asked to forget: ask them, then pass what they confirm to
    `pet.memories.forget_confirmed`. Empty if nothing that they told matches; None if they did not ask."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of all calls; zeros where the server did not count each of them."""
    shown: tuple[Memory, ...] = ()
    """The facts that the prompt held."""
    found: tuple[Hit, ...] = ()
    """What the searches found in memory and the model was shown, each once; in a turn without a search, what
    it listed. Without the lines around a found message."""
    client_calls: tuple[CallItem, ...] = ()
    """Calls of the client's own tools. The turn goes on when it is asked again with their results."""
    cut: bool = False
    """Whether the answer ended before it was whole: the model had no more tokens, or a filter of its provider
    stopped it."""
    value: T = None  # type: ignore[assignment]
    """The answer as the type that was asked for; then `message` is its JSON."""


Ending = Annotated[
    Callable[[tuple[ForgetCandidate, ...] | None, Sequence[ToolCall]], Awaitable[str]],
    Argument(async_function),
]
"""Given what the person may have asked to forget, as in `Reply`, and the calls of a turn: what a surface adds
to its answer; empty for nothing."""


MayRead = Callable[[Sequence[Place]], Awaitable[Mapping[Place, str]]]
"""Given places in which the person wrote, returns those that they can still read, with what to call each."""
Reads = Sequence[Place | str] | MayRead


class TurnOptions(TypedDict, total=False):
    """The arguments of `Companion.respond` and `stream` beside the text and the user."""

    place: Where
    """Where; None is in private."""
    conversation: Name | None
    """Unset, a user has one private conversation and each place has one."""
    author: Name | None
    """The name to show for the user; default: the id."""
    instructions: Text
    """What the calling program wishes of the answer; the model sees it as a wish."""
    origins: ShortTexts
    """The ids that a chat platform gave to the message, for when it is deleted there."""
    client: Annotated[ClientTurn, CLIENT_TURN] | None
    """What a client of a chat API sends beside the message; its history then is the conversation."""
    settle: bool
    """Wait until the answer's memories are stored, so that the reply tells of them."""
    model: Annotated[str | Model, Argument(model_or_name)] | None
    """Answers this turn: the name of another model at the same server, or a model of the Agents SDK."""
    timeout: Seconds | None
    """Seconds for the whole turn; then it raises ModelUnavailable. The message is kept, without a reply."""
    max_turns: Turns | None
    """Model calls in this turn, in place of the setting."""
    confirm: Annotated[Confirm, Argument(async_function)] | None
    """Asks the person before a tool of an MCP server runs that may change something; unset: there is none."""
    reads: Annotated["Reads", Argument(reads_of)] | None
    """In private, the places that the person can read: of those in which they wrote, they are searched too.
    For `HACHI_READ_PLACES`; a function is asked which of them can be read."""
    ending: Ending | None
    """Says what is added to the answer, as a link where nothing can be pressed."""
