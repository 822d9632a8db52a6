"""OpenAI's chat completions: the request, and the response with the memories that are added to it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_jsonable_python

from agent.errors import BadInput
from agent.surfaces.records_json import decision_json
from agent.types import Reply, Usage
from memory.records import Hit, Memory

Json = dict[str, Any]

MODEL = "hachi"
"""The only model name of this API. The operator chooses the language model behind it."""
MAX_EARLIER = 100
"""How many messages before the last one are read."""
CHARACTERS_PER_TOKEN = 4

_CLIENT_TASK = re.compile(r"\s*### Task:\s")

EXAMPLE: Json = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "No pesto for Lucie."}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    "memories": [{"id": "0f7f2b0e", "content": "Lucie is allergic to nuts", "use": "used", "score": 0.71}],
    "trace_id": "trace_527e566f1fec42b3b9fd3bdc0df60eaf",
}


def example(fields: Json) -> ConfigDict:
    """Return the config that shows an example of a model in `/openapi.json`."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class _Open(BaseModel):
    """Accepts the fields of OpenAI's API that are not named here; they change nothing."""

    model_config = ConfigDict(extra="allow")


class Part(_Open):
    type: str = "text"
    text: str | None = None


class ChatMessage(_Open):
    """One message of the conversation that the client sends."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The text parts of the content."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text).strip()
        return (self.content or "").strip()


class StreamOptions(_Open):
    include_usage: bool | None = None


class ChatRequest(_Open):
    """The body of a chat completion."""

    model_config = example({"messages": [{"role": "user", "content": "My sister is allergic to nuts."}]})

    model: str | None = Field(default=None, description="Any; the one that Hachi is set up with answers.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="1, where it is given.")
    user: str | None = Field(default=None, description="With a user's key, that user or nobody.")


@dataclass(frozen=True, slots=True)
class ChatInput:
    """The content of a request's messages."""

    text: str
    """The last message of the user, which this turn answers."""
    earlier: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """The client's copy of the earlier messages, oldest first."""
    instructions: str = ""
    """The client's own instructions for this conversation."""

    @property
    def is_client_task(self) -> bool:
        """Whether Open WebUI asks for a title, tags or follow-up questions, instead of a person. Such a
        request begins with a task and contains the whole conversation."""
        return bool(_CLIENT_TASK.match(self.text)) and "<chat_history>" in self.text and not self.earlier


def parse_messages(messages: Sequence[ChatMessage]) -> ChatInput:
    """Parse the messages. Raises BadInput if no user message exists, or if it contains more than text."""
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise BadInput("messages: there is no message of the user")
    content = messages[last].content
    for part in content if isinstance(content, list) else ():
        if part.text is None or part.type not in ("text", "input_text"):
            raise BadInput(f"messages: only text can be read, and this holds {part.type[:40]!r}")
    instructions = [message.text for message in messages if message.role in ("system", "developer")]
    return ChatInput(
        text=messages[last].text,
        earlier=tuple(
            (message.role, message.text)
            for message in messages[max(0, last - MAX_EARLIER) : last]
            if message.role in ("user", "assistant") and message.text
        ),
        instructions="\n\n".join(filter(None, instructions)),
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """Writes one response, whole or as the data of a stream's chunks."""

    id: str
    created: int
    """Seconds since 1970."""
    prompt: str
    include_usage: bool

    def whole(self, text: str, reply: Reply | None = None) -> Json:
        """Return the response that is not streamed."""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        usage = {"usage": usage_of(self.prompt, text, reply)}
        return self._frame("chat.completion", [choice]) | usage | extra_fields(reply)

    def begin(self) -> str:
        """Return the first chunk, which has no text."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        """Return a chunk with a piece of the reply."""
        return self._chunk({"content": text})

    def end(self, text: str, reply: Reply | None = None) -> Iterator[str]:
        """Yield the memories, the usage if the client requested it, and the end mark."""
        yield self._chunk({}, "stop", extra_fields(reply))
        if self.include_usage:
            usage = {"usage": usage_of(self.prompt, text, reply)}
            yield json.dumps(self._frame("chat.completion.chunk", []) | usage)
        yield "[DONE]"

    def _chunk(
        self, delta: dict[str, str], finish_reason: str | None = None, extra: Json | None = None
    ) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return json.dumps(self._frame("chat.completion.chunk", [choice]) | (extra or {}))

    def _frame(self, kind: str, choices: list[Json]) -> Json:
        about = {"id": self.id, "object": kind, "created": self.created, "model": MODEL}
        return about | {"choices": choices}


def extra_fields(reply: Reply | None) -> Json:
    """Return the fields that OpenAI's API does not have."""
    if reply is None:
        return {"memories": []}
    learned = [decision_json(decision) | {"use": "learned"} for decision in reply.memories]
    memories = to_jsonable_python([*used_memories(reply), *learned])
    extra: Json = {"memories": memories, "trace_id": reply.trace_id}
    if reply.forget is not None:
        extra["forget"] = to_jsonable_python(reply.forget)
    return extra


def used_memories(reply: Reply) -> list[Json]:
    """Return the facts that the prompt held, and what the tools found."""
    given: list[tuple[Memory | Hit, str, float | None]] = [(fact, "memory", None) for fact in reply.given]
    found = [(hit, hit.kind, round(hit.score, 2)) for hit in reply.found]
    return [
        {"id": one.id, "content": one.content, "use": "used", "kind": kind, "score": score}
        for one, kind, score in (*given, *found)
    ]


def usage_of(prompt: str, answer: str, reply: Reply | None = None) -> Json:
    """Return the tokens that the model's server counted in the turn, or else an estimate."""
    counted = reply.usage if reply else Usage()
    sent, received = counted.input, counted.output
    details = {"prompt_tokens_details": {"cached_tokens": counted.cached}}
    if counted == Usage():
        sent, received = (-(-len(text) // CHARACTERS_PER_TOKEN) for text in (prompt, answer))
        details = {}
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received} | details
