"""Answer `POST /v1/responses` by converting each request to a chat completion's."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response

from agent.companion import Companion
from agent.errors import BadInput
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import ApiError
from agent.surfaces.http.limits import MOST_MESSAGES, MOST_TOOLS, CallId, Id, Text
from agent.surfaces.http.openai_api.chat import answer
from agent.surfaces.http.openai_api.chat_request import (
    ChatRequest,
    Choice,
    Effort,
    FunctionTool,
    JsonSchema,
    Parameters,
    ToolChoice,
    Verbosity,
)
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.openai_api.messages import Content
from agent.surfaces.http.openai_api.response_events import ResponseEvents, ResponseJson
from agent.surfaces.http.routes import api_routes
from agent.turn.client.alignment import branch_of
from agent.turn.client.our_calls import without_ours
from agent.types.client import ITEMS, CallItem, Item, MessageItem, ResultItem
from memory.sql.messages.client_calls import stored_calls

router = api_routes(tag="chat", any_query=True)

Json = dict[str, Any]
HARMLESS = {
    "store": (True,),
    "truncation": ("auto", "disabled"),
    "service_tier": ("auto", "default"),
    "include": (["reasoning.encrypted_content"],),
    "top_logprobs": (0,),
    "stream_options": ({"include_obfuscation": False},),
}
HISTORY = 1_000
"""How many messages of an earlier response's conversation are read."""


class InputItem(BaseModel):
    """One item of the input: a message, a call of a tool, or its result."""

    model_config = ConfigDict(extra="allow")

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: Content | None = None
    call_id: CallId = ""
    name: Id = ""
    arguments: Text = ""
    output: Content = ""

    def message(self) -> Json:
        """Return the item as a message of a chat."""
        if self.type == "function_call":
            function = {"name": self.name, "arguments": self.arguments}
            return {"role": "assistant", "tool_calls": [{"id": self.call_id, "function": function}]}
        if self.type == "function_call_output":
            return {"role": "tool", "tool_call_id": self.call_id, "content": self.output}
        if self.role is None:
            raise BadInput("input: a message needs a role")
        return {"role": self.role, "content": self.content}


class Format(JsonSchema):
    type: Literal["text", "json_object", "json_schema"] = "text"


class TextOptions(BaseModel):
    format: Format | None = None
    verbosity: Verbosity | None = None


class Reasoning(BaseModel):
    effort: Effort | None = None


class FlatTool(FunctionTool):
    type: Literal["function"]


class ResponsesRequest(Parameters):
    """The body of a response."""

    model_config = ConfigDict(extra="allow") | example({"input": "My sister is allergic to nuts."})

    input: Text | Annotated[list[InputItem], Field(min_length=1, max_length=MOST_MESSAGES)]
    instructions: Text | None = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    text: TextOptions | None = None
    reasoning: Reasoning | None = None
    tools: Annotated[list[FlatTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | Choice | None = None
    previous_response_id: Annotated[str | None, Field(max_length=100)] = None

    def as_chat(self, earlier: Sequence[InputItem] = ()) -> ChatRequest:
        """Return the same request for a chat completion, with the `earlier` items before its own. Raises
        BadInput."""
        others = self.others(HARMLESS)
        messages = [{"role": "developer", "content": self.instructions}] if self.instructions else []
        given = [InputItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        text, reasoning = self.text or TextOptions(), self.reasoning or Reasoning()
        form = text.format or Format()
        body = (
            others
            | {name: getattr(self, name) for name in Parameters.model_fields}
            | {
                "messages": [*messages, *_messages((*earlier, *given))],
                "max_completion_tokens": self.max_output_tokens,
                "reasoning_effort": reasoning.effort,
                "verbosity": text.verbosity,
                "response_format": {"type": form.type, "json_schema": form.model_dump(by_alias=True)},
                "tools": [{"type": "function", "function": tool.model_dump()} for tool in self.tools or ()],
                "tool_choice": self.tool_choice,
            }
        )
        try:
            return ChatRequest.model_validate(body)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise BadInput(f"{fault['loc'][0]}: {fault['msg'].lower()}") from None


def _messages(items: Iterable[InputItem]) -> list[Json]:
    """Return the items as messages. Calls that follow each other become one message."""
    messages: list[Json] = []
    for item in items:
        if item.type == "reasoning":
            continue
        message = item.message()
        if messages and "tool_calls" in message and "tool_calls" in messages[-1]:
            messages[-1]["tool_calls"] += message["tool_calls"]
        else:
            messages.append(message)
    return messages


@router.post("/v1/responses", response_class=JSONResponse, responses={200: {"model": ResponseJson}})
async def create_response(
    asked: ResponsesRequest, caller: Authenticated, pet: Pet, request: Request
) -> Response:
    """Answer the last message of the user, as `/v1/chat/completions` does.

    The items before it are the conversation. With `previous_response_id` they continue that response, also if
    it ended with calls of your tools. `conversation` names one whose history Hachi stores.
    """
    conversation: str | None = None
    earlier: list[InputItem] = []
    if asked.previous_response_id:
        if asked.stored_conversation:
            raise BadInput("previous_response_id: it has its conversation; send no `conversation`")
        conversation, earlier = await _before(pet, asked.previous_response_id, asked.person(caller))
    id, created = f"resp_{uuid4().hex}", int(pet.clock().timestamp())
    repeated = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    writer = partial(ResponseEvents, id, created, repeated)
    return await answer(asked.as_chat(earlier), caller, pet, request, writer, conversation)


async def _before(pet: Companion, response: str, user: str | None) -> tuple[str, list[InputItem]]:
    """Return the id of the conversation of an earlier response of this person, and its items up to that
    response. Raises ApiError."""
    transcript = pet.components.transcript
    sent = await transcript.on_a_branch(f"response:{response}", user) if user else None
    stored = await transcript.branches(sent.conversation_id, str(user), HISTORY) if sent else []
    if sent is None or not (said := branch_of(stored, sent.id)):
        message = "previous_response_id: there is no such response of this person"
        raise ApiError(400, "previous_response_not_found", message)
    kept = await stored_calls(pet.components.database, sent.id)
    calls = without_ours(ITEMS.validate_python(kept.items)) if kept else []
    items = [*(MessageItem(one.role, one.text) for one in said), *calls]
    return sent.conversation_id, [_input_item(item) for item in items]


def _input_item(item: Item) -> InputItem:
    match item:
        case CallItem(id, name, arguments):
            return InputItem(type="function_call", call_id=id, name=name, arguments=arguments)
        case ResultItem(id, output):
            return InputItem(type="function_call_output", call_id=id, output=output)
        case MessageItem(role, text):
            return InputItem(role=role, content=text)
