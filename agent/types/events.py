"""The events of a stream during a turn."""

from dataclasses import dataclass
from typing import Any

from agent.types import Reply, ToolCall
from memory.records import Decision


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
