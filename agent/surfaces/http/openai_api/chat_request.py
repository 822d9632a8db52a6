"""Read the body of a chat completion and the parameters in it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.errors import BadInput
from agent.surfaces.http.errors import TOOL_NAME
from agent.surfaces.http.identity import MAX_CHAT, MAX_NAME, Caller
from agent.surfaces.http.limits import (
    MOST_MESSAGES,
    MOST_STOPS,
    MOST_TOOLS,
    FreeObject,
    Id,
    StopText,
    Text,
    sendable,
)
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.openai_api.messages import ChatInput, ChatMessage, Function, LenientBody
from agent.turn.client.json_schema import check_schema
from agent.types.client import AnswerForm, ClientTool, ClientTurn, Sampling

NAMES_THE_PERSON = "Who speaks, with a service's key; with a user's key, that user or nobody."
IGNORED = frozenset({"prompt_cache_key", "prompt_cache_retention"})
"""Parameters that change nothing about the answer."""
MAX_READS = 50
SAMPLED = "temperature top_p presence_penalty frequency_penalty seed reasoning_effort verbosity".split()
REFUSED = {
    **dict.fromkeys(("logprobs", "top_logprobs"), "no probabilities are returned"),
    "logit_bias": "the answer is JSON around the text, so single tokens cannot be weighted",
    **dict.fromkeys(("audio", "modalities"), "answers are text"),
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


class FunctionTool(LenientBody):
    name: Annotated[str, Field(pattern=TOOL_NAME)]
    description: Text | None = None
    parameters: FreeObject | None = None

    def offered(self) -> ClientTool:
        """Return the tool as a turn takes it."""
        nothing = {"type": "object", "properties": {}}
        return ClientTool(self.name, self.description or "", self.parameters or nothing)


class NewTool(LenientBody):
    """A tool of the client."""

    type: Literal["function"]
    function: FunctionTool


class Choice(LenientBody):
    """`tool_choice` in the form of either API: one tool that must be called, or the tools of which one may or
    must be."""

    name: Id = ""
    function: Function | None = None
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list["Choice"] | None, Field(max_length=MOST_TOOLS)] = None
    allowed_tools: "Choice | None" = None

    @property
    def tool(self) -> str:
        return self.function.name if self.function else self.name

    @property
    def allowed(self) -> frozenset[str] | None:
        """Return the names of the tools that may be called; None for all."""
        tools = (self.allowed_tools or self).tools
        return None if tools is None else frozenset(one.tool for one in tools)


class JsonSchema(LenientBody):
    name: Id = "answer"
    schema_: FreeObject | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(LenientBody):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @property
    def form(self) -> AnswerForm | None:
        """Return the format that the answer must have. Raises BadInput for a missing or invalid schema."""
        given = self.json_schema or JsonSchema()
        if self.type != "json_schema":
            return AnswerForm(given.name) if self.type == "json_object" else None
        schema = given.schema_ or {}
        check_schema(schema)
        if not schema or schema.get("type", "object") != "object":
            raise BadInput("response_format: json_schema needs a `schema` of an object")
        return AnswerForm(given.name, schema, bool(given.strict))


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Verbosity = Literal["low", "medium", "high"]
ToolChoice = Literal["none", "auto", "required"]


class StreamOptions(LenientBody):
    include_usage: bool | None = None


class Conversation(LenientBody):
    id: Id


class Parameters(BaseModel):
    """Parameters that both of OpenAI's APIs have."""

    model_config = ConfigDict(extra="allow")

    model: Id | None = Field(default=None, description="Any value; the configured model answers.")
    stream: bool | None = False
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    parallel_tool_calls: bool | None = None
    user: str | None = Field(default=None, max_length=MAX_NAME, description=NAMES_THE_PERSON)
    safety_identifier: str | None = Field(default=None, max_length=MAX_NAME, description=NAMES_THE_PERSON)
    metadata: FreeObject | None = Field(
        default=None, description="Its `chat_id` or `conversation_id` names the conversation."
    )
    conversation: Id | Conversation | None = Field(
        default=None,
        description="The name of a conversation whose history Hachi stores; messages are added to it.",
    )

    reads: list[Id] | None = Field(
        default=None,
        max_length=MAX_READS,
        description="With a service's key: places that the person can read, also searched in private.",
    )

    def person(self, caller: Caller) -> str | None:
        """Return the user that the request is for. Raises ApiError if the caller may not act for them."""
        return caller.acting_for(self.user or (None if caller.user else self.safety_identifier))

    @property
    def stored_conversation(self) -> str:
        """Return the client's name for a conversation whose history Hachi stores; empty if the request names
        none."""
        here = self.conversation.id if isinstance(self.conversation, Conversation) else self.conversation
        return (here or "").strip()

    @property
    def chat(self) -> str | None:
        """Return the client's name for the conversation."""
        sent = self.metadata or {}
        named = str(
            self.stored_conversation or sent.get("chat_id") or sent.get("conversation_id") or ""
        ).strip()
        if len(named) > MAX_CHAT:
            raise BadInput(f"the name of the conversation has more than {MAX_CHAT} characters")
        return named or None

    def others(self, harmless: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that OpenAI's API does not have. Raises BadInput for one of OpenAI's that is
        not supported. `harmless` maps parameters to the values that ask for the default behaviour; those are
        accepted."""
        others = {}
        for name, value in (self.model_extra or {}).items():
            if value is None or name in IGNORED or value in harmless.get(name, ()):
                continue
            if name not in REFUSED:
                try:
                    others[name] = sendable(value)
                except ValueError as error:
                    raise BadInput(f"{name}: {error}") from error
            elif value not in (False, "", [], {}):
                raise BadInput(f"{name}: {REFUSED[name]}")
        return others


class ChatRequest(Parameters):
    """The body of a chat completion."""

    model_config = ConfigDict(extra="allow") | example(
        {"messages": [{"role": "user", "content": "My sister is allergic to nuts."}]}
    )

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="If set, 1.")
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    presence_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    frequency_penalty: Annotated[float | None, Field(ge=-2, le=2)] = None
    seed: int | None = None
    stop: StopText | Annotated[list[StopText], Field(max_length=MOST_STOPS)] | None = None
    reasoning_effort: Effort | None = None
    verbosity: Verbosity | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[NewTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | Choice | None = None

    def client_turn(self, messages: "ChatInput", *, stored_here: bool) -> ClientTurn:
        """Return the request as a turn takes it. `stored_here`: the history comes from the transcript, not
        from the client."""
        if self.n not in (None, 1):
            raise BadInput("n: one answer is made, so n must be 1")
        usual = {"modalities": (["text"],), "service_tier": ("auto", "default"), "top_logprobs": (0,)}
        others = self.others(usual)
        choice: Any = self.tool_choice
        tools = [tool.function for tool in self.tools or ()]
        if isinstance(choice, Choice):
            allowed, choice = choice.allowed, choice.tool or (choice.allowed_tools or choice).mode
            tools = [tool for tool in tools if allowed is None or tool.name in allowed]
        tools = [] if choice == "none" else tools
        asked = {name: getattr(self, name) for name in SAMPLED}
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        most = self.max_completion_tokens or self.max_tokens
        return ClientTurn(
            history=None if stored_here else messages.history,
            after=messages.after,
            shown=messages.shown,
            images=messages.images,
            tools=tuple(tool.offered() for tool in tools),
            tool_choice=None if choice in ("none", "auto") else choice,
            parallel_tool_calls=self.parallel_tool_calls if tools else None,
            sampling=Sampling(**asked, max_tokens=most, stop=stop, others=others),
            form=self.response_format.form if self.response_format else None,
        )
