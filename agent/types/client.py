"""What a client of a chat API sends beside a message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agent.errors import BadInput
from agent.types.arguments import Argument, InvalidValue

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Revalidated:
    """A record that pydantic validates as an instance. Validating a copy as `dict` would take seven times as
    long."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"revalidate_instances": "always"}


OTHER_MEMORY = "turns with memory tools of a client"
"""A figure of a person."""
AN_IMAGE = "[an image]"
"""What stands for an image: in the transcript of a message that is an image alone, and in the prompt for one
of an earlier message."""


PICTURE_URL = ("data:", "https://")
"""How the URL of an image begins that the model is shown."""


@dataclass(frozen=True, slots=True)
class MessageItem(Revalidated):
    """A message in the client's copy of the conversation."""

    role: Literal["user", "assistant"]
    text: str
    id: str = ""
    """In the transcript; empty where it is not in it."""
    images: tuple[str, ...] = ()
    """URLs, `data:` among them; in a turn what is no URL is the name of one that is not shown."""


@dataclass(frozen=True, slots=True)
class CallItem(Revalidated):
    """A call of one of the client's tools."""

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    ours: bool = False
    """Whether it is a call of a tool of ours, in a turn that ended in a client's call."""
    wanted_back: str = ""
    """What the model's provider wants back with the call, as JSON; see `our_calls.state_of`."""


@dataclass(frozen=True, slots=True)
class ResultItem(Revalidated):
    """The result of a tool call."""

    call_id: str
    output: str


Item = MessageItem | CallItem | ResultItem


@cache
def items_as_json() -> "TypeAdapter[tuple[Item, ...]]":
    """Return the adapter that reads and writes items as JSON. It is built on first use, because importing
    pydantic doubles the time of `--help`."""
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[Item, ...])


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
    """What OpenAI does not know, and a server of models may, as `top_k`."""


@dataclass(frozen=True, slots=True)
class AnswerForm(Revalidated):
    """The JSON object that the client wants as answer."""

    name: str
    schema: dict[str, Any] | None = None
    """None: any object."""
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ClientTurn(Revalidated):
    """The part of a turn that a client of a chat API sends."""

    history: tuple[Item, ...] | None = None
    """The conversation before the message, oldest first; None where the transcript has it."""
    after: tuple[Item, ...] = ()
    """What follows the message already: the calls of the client's tools and their results."""
    shown: str = ""
    """The message as the model is shown it, where the client put it into a template."""
    images: tuple[str, ...] = ()
    """Of the message."""
    tools: tuple[ClientTool, ...] = ()
    tool_choice: str | None = None
    """`required`, or the name of the tool to call; None leaves it to the model."""
    parallel_tool_calls: bool | None = None
    sampling: Sampling = field(default_factory=Sampling)
    form: AnswerForm | None = None
    replies_to: str = ""
    """The message that it replies to, as `name: text`: data, and not the speaker's words."""
    quoted: tuple[str, ...] = ()
    """The ids of what `replies_to` holds, of rows or by `quote_id` of `memory.sql.jobs.deliveries`: the trace
    rests on them."""
    begins: bool = False
    """Whether the client says that its conversation begins with the message."""
    question: str = ""
    """The message's name with the client, as an origin."""

    quoted_images: tuple[str, ...] = ()
    """Of what it replies to: shown for this answer alone, so nothing that they show is kept."""
    pictures_optional: bool = False
    """Whether a model that sees no images answers without them, and is told so; else they are refused."""

    @property
    def pictures(self) -> int:
        """How many images of the message the model may be shown."""
        return sum(url.startswith(PICTURE_URL) for url in self.images)

    @property
    def memory_tools(self) -> list[str]:
        """Return the names of the client's tools that seem to keep memories."""
        return [tool.name for tool in self.tools if re.search("memor(y|ies)|remember", tool.name, re.I)]


@cache
def _turns() -> "TypeAdapter[ClientTurn]":
    from pydantic import TypeAdapter

    return TypeAdapter(ClientTurn)


def _read_turn(value: object) -> ClientTurn:
    """Validate a ClientTurn, field by field. Raises BadInput."""
    from pydantic import ValidationError

    if not isinstance(value, ClientTurn):
        raise InvalidValue(value, "not a ClientTurn")
    try:
        return _turns().validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(["client", *map(str, fault["loc"])])
        raise BadInput(f"{where}: {fault['msg'][0].lower()}{fault['msg'][1:]}") from error


CLIENT_TURN = Argument(_read_turn)
