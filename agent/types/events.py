"""What a stream tells while a turn goes on."""

from dataclasses import dataclass
from typing import Any

from agent.types import Reply, ToolCall
from memory.records import Decision


@dataclass(frozen=True, slots=True)
class TextWritten:
    """The person sees more text."""

    text: str
    """What the person sees next."""


@dataclass(frozen=True, slots=True)
class ThoughtWritten:
    """The model thinks, where its server tells that apart from the answer."""

    text: str
    """What the model thinks, where its server tells that apart from the answer."""


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
    """By the tool `remember` and, in a turn that settles, for the answer's memories."""


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The turn is over, and its reply is durable."""

    reply: Reply[Any]
    """It is durable."""


StreamEvent = TextWritten | ThoughtWritten | ToolStarted | ToolEnded | MemoryDecided | TurnDone
