"""The body of OpenAI's chat completions: the client's conversation, and what it asks of the answer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from jsonschema import Draft202012Validator, SchemaError
from pydantic import BaseModel, ConfigDict, Field

from agent.errors import BadInput
from agent.surfaces.http.authentication import MAX_CHAT, MAX_NAME, Caller
from agent.surfaces.http.errors import TOOL_NAME
from agent.surfaces.http.openai_api.completion import example
from agent.types.client import (
    AnswerForm,
    Called,
    ClientTool,
    ClientTurn,
    Item,
    Returned,
    Said,
    Sampling,
)

AN_IMAGE = "[an image]"
"""What the transcript has of a message that is an image alone."""
_CLIENT_TASK = re.compile(r"\s*### Task:\s.*<chat_history>", re.DOTALL)
_CHOICE_OF_TOOLS = re.compile(r"(Query: )?History:\n")
_DOCUMENTS = re.compile(r"\s*### Task:\s.*</(?:context|user_query)>\s*(?P<asked>\S.*)", re.DOTALL)
"""How Open WebUI begins what it asks for itself, and puts a message below the documents that it found."""
NAMES_THE_PERSON = "Who speaks, with a service's key; with a user's key, that user or nobody."
IGNORED = frozenset({"prompt_cache_key", "prompt_cache_retention"})
"""Parameters that change nothing about the answer."""
REFUSED = {
    "logprobs": "no probabilities are returned",
    "top_logprobs": "no probabilities are returned",
    "logit_bias": "the answer is JSON around the text, so single tokens cannot be weighted",
    "audio": "answers are text",
    "modalities": "answers are text",
    "functions": "send `tools`",
    "function_call": "send `tool_choice`",
    "prediction": "no predicted output is used",
    "web_search_options": "no web is searched",
    "store": "answers are kept as the person's conversation alone; GET /api/users/{user}/messages lists it",
    "service_tier": "there is one",
    "background": "answers are made while the client waits",
    "previous_response_id": "only /v1/responses goes on from a response",
    "include": "only reasoning.encrypted_content may be asked for, which adds nothing",
}


class _Open(BaseModel):
    """Accepts the fields of OpenAI's API that are not named here; they change nothing."""

    model_config = ConfigDict(extra="allow")


class ImageUrl(_Open):
    url: str


class Part(_Open):
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


class Function(_Open):
    name: str
    arguments: str = ""


class ToolCall(_Open):
    id: str
    function: Function


class ChatMessage(_Open):
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


class FunctionTool(_Open):
    name: Annotated[str, Field(pattern=TOOL_NAME)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class NewTool(_Open):
    """A tool of the client."""

    type: Literal["function"]
    function: FunctionTool


class NamedTool(_Open):
    function: Function


class JsonSchema(_Open):
    name: str = "answer"
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(_Open):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @property
    def form(self) -> AnswerForm | None:
        if self.type == "text":
            return None
        given = self.json_schema or JsonSchema()
        return answer_form(self.type, given.name, given.schema_, strict=bool(given.strict))


def answer_form(type: str, name: str, schema: dict[str, Any] | None, *, strict: bool) -> AnswerForm:
    """Return the form of the answer. Raises BadInput if the schema is missing or is none."""
    if type == "json_object":
        return AnswerForm(name)
    try:
        Draft202012Validator.check_schema(schema or {})
    except SchemaError as error:
        raise BadInput(f"response_format: {error.message[:200]}") from error
    if not schema or schema.get("type", "object") != "object":
        raise BadInput("response_format: json_schema needs a `schema` of an object")
    return AnswerForm(name, schema, strict)


Stop = Annotated[str, Field(min_length=1)]


class StreamOptions(_Open):
    include_usage: bool | None = None


class Conversation(_Open):
    id: str


class Parameters(BaseModel):
    """What a client may ask of the answer, in both of OpenAI's APIs."""

    model_config = ConfigDict(extra="allow")

    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    parallel_tool_calls: bool | None = None
    user: str | None = Field(default=None, max_length=MAX_NAME, description=NAMES_THE_PERSON)
    safety_identifier: str | None = Field(default=None, max_length=MAX_NAME, description=NAMES_THE_PERSON)
    metadata: dict[str, Any] | None = Field(
        default=None, description="Its `chat_id` or `conversation_id` names the conversation."
    )
    conversation: str | Conversation | None = Field(
        default=None, description="The name of a conversation that is kept here: what is said is added to it."
    )

    def person(self, caller: Caller) -> str | None:
        """Return whom the request is for. Raises ApiError if the caller may not act for them."""
        return caller.acting_for(self.user or (None if caller.user else self.safety_identifier))

    @property
    def chat(self) -> str | None:
        """The client's name for the conversation."""
        here = self.conversation.id if isinstance(self.conversation, Conversation) else self.conversation
        given = self.metadata or {}
        named = str(here or given.get("chat_id") or given.get("conversation_id") or "").strip()
        if len(named) > MAX_CHAT:
            raise BadInput(f"the name of the conversation has more than {MAX_CHAT} characters")
        return named or None

    def check(self, harmless: Mapping[str, Any]) -> None:
        """Raise BadInput for a parameter that would change nothing. `harmless` are values that ask for what
        is done anyway."""
        for name, value in (self.model_extra or {}).items():
            if value in (None, False, "", [], {}) or name in IGNORED or value in harmless.get(name, ()):
                continue
            raise BadInput(f"{name}: {REFUSED.get(name, 'there is no such parameter here; leave it out')}")


class ChatRequest(Parameters):
    """The body of a chat completion."""

    model_config = ConfigDict(extra="allow") | example(
        {"messages": [{"role": "user", "content": "My sister is allergic to nuts."}]}
    )

    model: str | None = Field(default=None, description="Any; the one that Hachi is set up with answers.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="1, where it is given.")
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    presence_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    seed: int | None = None
    stop: Stop | Annotated[list[Stop], Field(max_length=16)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[NewTool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None

    def client_turn(self, said: "ChatInput", *, kept_here: bool) -> ClientTurn:
        """Return it for a turn; `kept_here` where the transcript has the history."""
        if self.n not in (None, 1):
            raise BadInput("n: one answer is made, so n must be 1")
        self.check({"modalities": (["text"],), "service_tier": ("auto", "default"), "top_logprobs": (0,)})
        tools = () if self.tool_choice == "none" else self.tools or ()
        choice = self.tool_choice
        name = choice.function.name if isinstance(choice, NamedTool) else choice
        return ClientTurn(
            None if kept_here else said.history,
            said.after,
            said.shown,
            said.images,
            tuple(client_tool(tool.function) for tool in tools),
            None if name in ("none", "auto") else name,
            self.parallel_tool_calls if tools else None,
            Sampling(
                self.temperature,
                self.top_p,
                self.max_completion_tokens or self.max_tokens,
                self.presence_penalty,
                self.frequency_penalty,
                self.seed,
                (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
                self.reasoning_effort,
                self.verbosity,
            ),
            self.response_format.form if self.response_format else None,
        )


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


def client_tool(given: FunctionTool) -> ClientTool:
    """Return the tool for a turn."""
    nothing = {"type": "object", "properties": {}}
    return ClientTool(given.name, given.description or "", given.parameters or nothing)


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
