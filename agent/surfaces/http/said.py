"""What a client of OpenAI's API sends, read: what is said now, what was said before, and its own
instructions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import BadInput

MOST_EARLIER = 100
"""Messages before the last one that are looked at."""

_CHORE = re.compile(r"\s*### Task:\s")


class Part(BaseModel):
    """A piece of what a message holds."""

    model_config = ConfigDict(extra="allow")

    type: str = "text"
    text: str | None = None


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """As OpenAI's API has it. What is not named here is accepted, and changes nothing."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "model": "hachi",
                    "messages": [{"role": "user", "content": "My sister Lucie is allergic to nuts."}],
                }
            ]
        },
    )

    model: str | None = Field(default=None, description="Any; the one that Hachi is set up with answers.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="1, where it is given.")
    user: str | None = Field(default=None, description="With a user's key, that user or nobody.")


@dataclass(frozen=True, slots=True)
class Said:
    """What a request says."""

    text: str
    """The last message of the user: what is said now."""
    earlier: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """What the client says was said before, oldest first."""
    instructions: str = ""
    """The client's own, for this conversation."""

    @property
    def chore(self) -> bool:
        """Open WebUI also asks for titles, tags and follow-up questions: requests of its own, which nobody
        said. They begin with a task and hold the conversation as a whole."""
        return bool(_CHORE.match(self.text)) and "<chat_history>" in self.text and not self.earlier


def read_messages(messages: Sequence[ChatMessage]) -> Said:
    """Raises BadInput where nothing is said, or what is said is no text."""
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise BadInput("messages: there is no message of the user")
    earlier = []
    for message in messages[max(0, last - MOST_EARLIER) : last]:
        if message.role in ("user", "assistant") and (text := _text(message)):
            earlier.append((message.role, text))
    told = [_text(message) for message in messages if message.role in ("system", "developer")]
    return Said(
        text=_whole_text(messages[last]),
        earlier=tuple(earlier),
        instructions="\n\n".join(filter(None, told)),
    )


def _whole_text(message: ChatMessage) -> str:
    if isinstance(message.content, list):
        for part in message.content:
            if part.text is None or part.type not in ("text", "input_text"):
                raise BadInput(f"messages: only text can be read, and this holds {part.type[:40]!r}")
    return _text(message)


def _text(message: ChatMessage) -> str:
    """Of an earlier message, as far as it is text."""
    content: Any = message.content
    if isinstance(content, list):
        content = "\n".join(part.text for part in content if part.text)
    return (content or "").strip()
