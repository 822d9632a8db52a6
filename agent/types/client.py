"""The data that a client of a chat API sends with a message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agent.errors import BadInput
from agent.types.arguments import Argument, InvalidValue
from memory.text import one_line, readable


class Revalidated:
    """A record that pydantic validates as an instance. Validating a copy as `dict` would take seven times as
    long."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"revalidate_instances": "always", "defer_build": True}


OTHER_MEMORY = "turns with memory tools of a client"
"""The name of a person's figure."""
AN_IMAGE = "[an image]"
"""Replaces an image: in the transcript if the message is only an image; in the prompt if it is earlier."""


PICTURE_URL = ("data:", "https://")
"""The beginnings of URLs of images that the model receives."""
LONGEST_DESCRIPTION = 300
"""The most characters of a description of pictures."""
_DESCRIPTION = re.compile(r"(?:\A|\n)\[the picture shows: [^\n]*\]\Z")
"""The description of a message's pictures: one line at the end of its text."""


@dataclass(frozen=True, slots=True)
class MessageItem(Revalidated):
    """A message in the client's copy of the conversation."""

    role: Literal["user", "assistant"]
    text: str
    id: str = ""
    """The id in the transcript; empty if it is not there."""
    images: tuple[str, ...] = ()
    """URLs, including `data:` ones. In a turn, any other entry names an image that is not shown."""


@dataclass(frozen=True, slots=True)
class CallItem(Revalidated):
    """A call of one of the client's tools."""

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    ours: bool = False
    """Whether it calls one of Hachi's tools, in a turn that ended in a call of a client's tool."""
    wanted_back: str = ""
    """JSON that the model's provider wants back with the call; see `our_calls.state_of`."""


@dataclass(frozen=True, slots=True)
class ResultItem(Revalidated):
    """The result of a tool call."""

    call_id: str
    output: str


Item = MessageItem | CallItem | ResultItem


ITEMS = TypeAdapter[tuple[Item, ...]](tuple[Item, ...], config=ConfigDict(defer_build=True))
"""Reads and writes items as JSON."""


@dataclass(frozen=True, slots=True)
class ClientTool(Revalidated):
    """A tool that the client runs itself."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Sampling(Revalidated):
    """Sampling parameters; None if the client does not set one."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: str | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that OpenAI does not accept but other servers may, such as `top_k`."""


@dataclass(frozen=True, slots=True)
class AnswerForm(Revalidated):
    """The JSON object that the client wants as the answer."""

    name: str
    schema: dict[str, Any] | None = None
    """None: any object."""
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ClientTurn(Revalidated):
    """The part of a turn that a client of a chat API sends."""

    history: tuple[Item, ...] | None = None
    """The conversation before the message, oldest first; None if the transcript has it."""
    after: tuple[Item, ...] = ()
    """Items after the message: calls of the client's tools, and their results."""
    shown: str = ""
    """The message as the model sees it, if the client put it into a template."""
    images: tuple[str, ...] = ()
    """The images of the message."""
    tools: tuple[ClientTool, ...] = ()
    tool_choice: str | None = None
    """`required`, or the name of the tool to call; None leaves it to the model."""
    parallel_tool_calls: bool | None = None
    sampling: Sampling = field(default_factory=Sampling)
    form: AnswerForm | None = None
    replies_to: str = ""
    """The message that it replies to, as `name: text`. This is data, not the speaker's words."""
    quoted: tuple[str, ...] = ()
    """The ids of the rows quoted in `replies_to`, or ids from `quote_id` of `memory.sql.jobs.deliveries`.
    Forgetting one of them empties the trace."""
    begins: bool = False
    """Whether the client says that the conversation begins with this message."""
    question: str = ""
    """The client's id of the message, as an origin."""

    quoted_images: tuple[str, ...] = ()
    """Images of the message that it replies to. They are shown only for this answer, and nothing about them
    is stored."""
    pictures_optional: bool = False
    """Whether a model without vision answers without images, and learns of them; otherwise they are
    refused."""

    @property
    def pictures(self) -> int:
        """Return how many images of the message the model may see."""
        return sum(url.startswith(PICTURE_URL) for url in self.images)

    @property
    def memory_tools(self) -> list[str]:
        """Return the names of the client's tools that seem to store memories."""
        return [tool.name for tool in self.tools if re.search("memor(y|ies)|remember", tool.name, re.I)]


_TURN = TypeAdapter(ClientTurn)


def _read_turn(value: object) -> ClientTurn:
    """Validate a ClientTurn, field by field. Raises BadInput."""
    if not isinstance(value, ClientTurn):
        raise InvalidValue(value, "not a ClientTurn")
    try:
        return _TURN.validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(["client", *map(str, fault["loc"])])
        raise BadInput(f"{where}: {fault['msg'][0].lower()}{fault['msg'][1:]}") from error


CLIENT_TURN = Argument(_read_turn)


def with_description(text: str, description: str) -> str:
    """Return the text with this description in place of any earlier one."""
    shown = one_line(readable(description))[:LONGEST_DESCRIPTION].strip()
    text = without_description(text)
    return f"{text}\n[the picture shows: {shown}]".lstrip("\n") if shown else text


def without_description(text: str) -> str:
    return _DESCRIPTION.sub("", text)


def description_in(text: str) -> str:
    """Return the line that describes pictures; empty if there is none."""
    line = _DESCRIPTION.search(text)
    return line[0].strip("\n") if line else ""
