"""The messages of a chat, as OpenAI's clients send them: what was said, called and asked for."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent.errors import BadInput
from agent.types.client import Called, Item, Returned, Said

AN_IMAGE = "[an image]"
"""What the transcript has of a message that is an image alone."""
_CLIENT_TASK = re.compile(
    r"\s*### Task:\s(?:(?!<context>\s*<source\b).)*<chat_history>.*</chat_history>", re.DOTALL
)
_CHOICE_OF_TOOLS = re.compile(r"(Query: )?History:\n")
_DOCUMENTS = re.compile(
    r"\s*### Task:\s.*<context>\s*<source\b.*</source>\s*</context>\s*"
    r"(?:<user_query>.*?</user_query>\s*)?(?P<asked>\S.*)",
    re.DOTALL,
)
"""How Open WebUI begins what it asks for itself, and puts a message below the documents that it found."""


class Open(BaseModel):
    """Accepts the fields of OpenAI's API that are not named here; they change nothing."""

    model_config = ConfigDict(extra="allow")


class ImageUrl(Open):
    url: str


class Part(Open):
    type: str = "text"
    text: str | None = None
    image_url: ImageUrl | str | None = None

    @property
    def image(self) -> str | None:
        """The URL of an image; None for text. Raises BadInput for anything else."""
        url = self.image_url.url if isinstance(self.image_url, ImageUrl) else self.image_url
        if self.type in ("image_url", "input_image") and url:
            return url
        if self.text is None or self.type not in ("text", "input_text", "output_text"):
            raise BadInput(f"messages: text and images can be read, and this holds {self.type[:40]!r}")
        return None


class Function(Open):
    name: str
    arguments: str = ""


class ToolCall(Open):
    id: str
    function: Function


class ChatMessage(Open):
    """One message of the conversation that the client sends."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text parts of the content. Of images alone it says so."""
        if isinstance(self.content, list):
            told = "\n".join(part.text for part in self.content if part.text).strip()
            return told or (AN_IMAGE if self.images else "")
        return (self.content or "").strip()

    @property
    def images(self) -> tuple[str, ...]:
        """The URLs of the images. Raises BadInput for what is neither text nor an image."""
        parts = self.content if isinstance(self.content, list) else ()
        return tuple(url for url in [part.image for part in parts] if url)

    @property
    def items(self) -> Iterator[Item]:
        """What it adds to the conversation."""
        if self.role == "tool":
            yield Returned(self.tool_call_id or "", self.text)
        elif self.role in ("user", "assistant"):
            if self.text:
                yield Said("user" if self.role == "user" else "assistant", self.text, images=self.images)
            for call in self.tool_calls or ():
                yield Called(call.id, call.function.name, call.function.arguments)


@dataclass(frozen=True, slots=True)
class ChatInput:
    """The content of a request's messages."""

    text: str
    """The last message of the user, which this turn answers."""
    history: tuple[Item, ...] = ()
    """The client's copy of the conversation before it, oldest first."""
    after: tuple[Item, ...] = ()
    shown: str = ""
    """The message as it was sent, where that is Open WebUI's template with documents around the text."""
    images: tuple[str, ...] = ()
    instructions: str = ""
    """The client's own instructions for this conversation."""

    @property
    def client_task(self) -> str | None:
        """What Open WebUI asks for itself, instead of a person: a title, tags, follow-up questions, or which
        tools to call. Such a request contains the whole conversation."""
        if self.history:
            return None
        if _CLIENT_TASK.match(self.text):
            return self.text
        choice = self.instructions.startswith("Available Tools:") and _CHOICE_OF_TOOLS.match(self.text)
        return f"{self.instructions}\n\n{self.text}" if choice else None


def parse_messages(messages: Sequence[ChatMessage]) -> ChatInput:
    """Parse the messages. Raises BadInput if no user message exists, or for what cannot be read."""
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise BadInput("messages: there is no message of the user")
    check_calls(messages)
    instructions = [message.text for message in messages if message.role in ("system", "developer")]
    text = messages[last].text
    found = None if _CLIENT_TASK.match(text) else _DOCUMENTS.fullmatch(text)
    return ChatInput(
        text=found["asked"] if found else text,
        shown=text if found else "",
        history=tuple(item for message in messages[:last] for item in message.items),
        after=tuple(item for message in messages[last + 1 :] for item in message.items),
        images=messages[last].images,
        instructions="\n\n".join(filter(None, instructions)),
    )


def check_calls(messages: Sequence[ChatMessage]) -> None:
    """Raise BadInput unless each call of a tool is followed by its result, and each result has a call."""
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise BadInput(f"messages: this result of a tool follows no call {message.tool_call_id!r}")
            waiting.discard(message.tool_call_id)
        elif waiting:
            break
        waiting |= {call.id for call in message.tool_calls or ()}
    if waiting:
        raise BadInput(f"messages: the results of these tool calls are missing: {', '.join(sorted(waiting))}")
