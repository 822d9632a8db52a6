"""Read the messages of a chat, as OpenAI's clients send them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import BadInput
from agent.surfaces.http import limits
from agent.surfaces.http.limits import MOST_PARTS, MOST_TOOLS, CallId, Id, Text
from agent.surfaces.http.openai_api.open_webui import (
    PICTURES_OF_A_TOOL,
    below_documents,
    below_files,
    is_client_task,
)
from agent.types.arguments import MAX_MESSAGE
from agent.types.client import AN_IMAGE, CallItem, Item, MessageItem, ResultItem

MAX_SHOWN = 4 * MAX_MESSAGE
"""Maximum characters of the last message together with the template that a client puts around it."""


class LenientBody(BaseModel):
    """Accepts the fields of OpenAI's API that are not named here; they change nothing."""

    model_config = ConfigDict(extra="allow")


class ImageUrl(LenientBody):
    url: limits.ImageUrl


class Part(LenientBody):
    type: Id = "text"
    text: Text | None = None
    refusal: Text | None = None
    image_url: ImageUrl | limits.ImageUrl | None = None

    @property
    def words(self) -> str | None:
        """Return the text; of a refusal, the text of the refusal."""
        return self.refusal if self.type == "refusal" else self.text

    @property
    def image(self) -> str | None:
        """Return the URL of an image; None for text. Raises BadInput for anything else."""
        url = self.image_url.url if isinstance(self.image_url, ImageUrl) else self.image_url
        if self.type in ("image_url", "input_image") and url:
            return url
        if self.words is None or self.type not in ("text", "input_text", "output_text", "refusal"):
            raise BadInput(f"messages: text and images can be read, and this holds {self.type[:40]!r}")
        return None


Content = Text | Annotated[list[Part], Field(max_length=MOST_PARTS)]


class Function(LenientBody):
    name: Id
    arguments: Text = ""


class ToolCall(LenientBody):
    id: CallId
    function: Function


class ChatMessage(LenientBody):
    """One message of the conversation that the client sends."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    refusal: Text | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=MOST_TOOLS)] | None = None
    tool_call_id: CallId | None = None

    @property
    def text(self) -> str:
        """Return the text parts of the content. A message of images alone becomes a text that says so."""
        if isinstance(self.content, list):
            told = "\n".join(part.words for part in self.content if part.words).strip()
            return told or (AN_IMAGE if self.images else "")
        return (self.content or self.refusal or "").strip()

    @property
    def images(self) -> tuple[str, ...]:
        """Return the URLs of the images. Raises BadInput for parts that are neither text nor an image."""
        parts = self.content if isinstance(self.content, list) else ()
        return tuple(url for url in [part.image for part in parts] if url)

    @property
    def items(self) -> Iterator[Item]:
        """Yield the items that this message adds to the conversation."""
        if self.role == "tool":
            yield ResultItem(self.tool_call_id or "", self.text)
            if self.images:
                yield MessageItem("user", PICTURES_OF_A_TOOL, images=self.images)
        elif self.role in ("user", "assistant"):
            if told := below_files(self.text) if self.role == "user" else self.text:
                yield MessageItem(self.role, told, images=self.images)
            for call in self.tool_calls or ():
                yield CallItem(call.id, call.function.name, call.function.arguments)


@dataclass(frozen=True, slots=True)
class ChatInput:
    """The content of a request's messages."""

    text: str
    """The last message of the user, which this turn answers."""
    history: tuple[Item, ...] = ()
    """The client's copy of the messages before it, oldest first."""
    after: tuple[Item, ...] = ()
    shown: str = ""
    """The message as it was sent, if Open WebUI put its template with documents around the text."""
    images: tuple[str, ...] = ()
    instructions: str = ""
    """The client's own instructions for this conversation."""

    client_task: str | None = None
    """The task if the client itself asks, not a person: a title, tags, follow-up questions …"""


def parse_messages(messages: Sequence[ChatMessage], task: str | None = None) -> ChatInput:
    """Parse the messages. `task` names the client's own task; empty if a person speaks, None if the client
    does not say. The text is empty if the client sends no message of the user, for example to have an answer
    continued. Raises BadInput for messages that are invalid or too long."""
    roles = [message.role for message in messages]
    users = (at for at, role in enumerate(roles) if role == "user" and not _shows_a_tools(messages, at))
    last = max(users, default=-1)
    if last < 0 and "assistant" not in roles:
        raise BadInput("messages: there is no message of the user")
    check_calls(messages)
    instructions = [message.text for message in messages if message.role in ("system", "developer")]
    text = messages[last].text if last >= 0 else ""
    if len(text) > MAX_SHOWN:
        raise BadInput(f"messages: the last one has {len(text):,} characters and the limit is {MAX_SHOWN:,}")
    history = tuple(item for message in messages[: max(last, 0)] for item in message.items)
    told = "\n\n".join(filter(None, instructions))
    if task or (task is None and not history and is_client_task(text, told)):
        return ChatInput(text, client_task="\n\n".join(filter(None, (one.text for one in messages))))
    asked = below_files(below_documents(text) or text)
    return ChatInput(
        text=asked,
        shown=text if asked != text else "",
        history=history,
        after=tuple(item for message in messages[last + 1 :] for item in message.items),
        images=messages[last].images if last >= 0 else (),
        instructions=told,
    )


def _shows_a_tools(messages: Sequence[ChatMessage], at: int) -> bool:
    """Return whether a message of the user holds pictures that a tool returned. Many servers take none in a
    tool's result, so clients send them in a message after it."""
    message = messages[at]
    told = message.text in (AN_IMAGE, PICTURES_OF_A_TOOL)
    return bool(at and messages[at - 1].role == "tool" and told and message.images)


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
