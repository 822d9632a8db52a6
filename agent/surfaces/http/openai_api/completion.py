"""Write chat completions, with the memories that were used."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from pydantic import ConfigDict
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from agent.surfaces.http.openai_api.open_webui import name_of
from agent.types import Reply
from agent.types import Usage as Tokens
from memory.records import ForgetCandidate, Hit, HitKind, Memory

Json = dict[str, Any]

MODEL = "hachi"
"""The only model name of this API. The operator chooses the language model behind it."""
CHARACTERS_PER_TOKEN = 4
HOW_TO_BE_REMEMBERED = (
    "Nothing is remembered, since the request names nobody: use a user's key, or with a service's key send "
    "`user` or the header x-openwebui-user-id."
)
HOW_TO_GO_ON = (
    "This begins a conversation. To go on in it, send its messages before the next one; or send the next one "
    "alone, with this `conversation`."
)


class ConversationName(TypedDict):
    id: str


class AnswerMemory(TypedDict):
    """A memory, message or summary that the prompt held or a search found."""

    id: str
    content: str
    use: Literal["used"]
    kind: HitKind
    score: float | None


class Extra(TypedDict):
    """The fields that OpenAI's APIs do not have: the memories that were used, the trace, the name of the
    conversation."""

    memories: NotRequired[list[AnswerMemory]]
    trace_id: NotRequired[str]
    conversation: NotRequired[ConversationName]
    note: NotRequired[str]
    forget: NotRequired[list[ForgetCandidate]]


class ChatCompletion(Extra):
    """An answer that is not streamed."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Json]
    usage: Json


EXAMPLE: Json = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "No pesto for Lucie."}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    "memories": [{"id": "0f7f2b0e", "content": "Lucie is allergic to nuts", "use": "used", "score": 0.71}],
    "trace_id": "trace_527e566f1fec42b3b9fd3bdc0df60eaf",
    "conversation": {"id": "~6dd83957-fa2b-4473-a8a5-703480bfc4f3"},
}


def example(fields: Json) -> ConfigDict:
    """Return a model's config with an example for `/openapi.json`."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


@dataclass(frozen=True, slots=True)
class Completion:
    """Writes one response, whole or as the data of a stream's chunks."""

    id: str
    created: int
    """Seconds since 1970."""
    include_usage: bool
    prompt: str = ""
    note: str | None = None
    origins: tuple[str, ...] = ()

    def whole(self, text: str, reply: Reply | None = None) -> Json:
        message: Json = {"role": "assistant", "content": text}
        if reply and reply.client_calls:
            message |= {"content": text or None, "tool_calls": tool_calls(reply)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(reply)}
        usage = {"usage": usage_of(self.prompt, text, reply)}
        extra = extra_fields(reply, self.note)
        return self._frame("chat.completion", [choice]) | usage | extra

    def begin(self) -> Iterator[str]:
        """Yield the first chunk, which has no text."""
        yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> Iterator[str]:
        yield self._chunk({"content": text})

    def thought(self, text: str) -> Iterator[str]:
        yield self._chunk({"reasoning_content": text})

    def end(self, text: str, reply: Reply | None = None) -> Iterator[str]:
        """Yield the memories, the usage if the client requested it, and the end mark."""
        if reply and reply.client_calls:
            calls = [{"index": at} | call for at, call in enumerate(tool_calls(reply))]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, finish_reason(reply), extra_fields(reply, self.note))
        if self.include_usage:
            usage = {"usage": usage_of(self.prompt, text, reply)}
            yield json.dumps(self._frame("chat.completion.chunk", []) | usage)
        yield "[DONE]"

    def _chunk(self, delta: Json, finish_reason: str | None = None, extra: Json | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return json.dumps(self._frame("chat.completion.chunk", [choice]) | (extra or {}))

    def _frame(self, kind: str, choices: list[Json]) -> Json:
        about = {"id": self.id, "object": kind, "created": self.created, "model": MODEL}
        return about | {"choices": choices}


def tool_calls(reply: Reply) -> list[Json]:
    return [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.client_calls
    ]


def finish_reason(reply: Reply | None) -> str:
    if reply and reply.client_calls:
        return "tool_calls"
    return "length" if reply and reply.cut else "stop"


def extra_fields(reply: Reply | None, note: str | None) -> Json:
    """Return the fields that OpenAI's API does not have."""
    if reply is None:
        return {"memories": []}
    extra: Json = {"memories": used_memories(reply), "trace_id": reply.trace_id}
    if reply.conversation:
        extra["conversation"] = {"id": name_of(reply.conversation)}
    if note:
        extra["note"] = note
    if reply.forget is not None:
        extra["forget"] = to_jsonable_python(reply.forget)
    return extra


def used_memories(reply: Reply) -> list[Json]:
    """Return the facts in the prompt and the hits of the tools."""
    given: list[tuple[Memory | Hit, str, float | None]] = [(fact, "memory", None) for fact in reply.shown]
    found = [(hit, hit.kind, round(hit.score, 2)) for hit in reply.found]
    return [
        {"id": one.id, "content": one.content, "use": "used", "kind": kind, "score": score}
        for one, kind, score in (*given, *found)
    ]


def usage_of(prompt: str, answer: str, reply: Reply | None = None) -> Json:
    """Return the tokens that the model's server counted in the turn, or an estimate if it counted none."""
    counted = reply.usage if reply else Tokens()
    sent, received = counted.input, counted.output
    details = {"prompt_tokens_details": {"cached_tokens": counted.cached}}
    if counted == Tokens():
        sent, received = (-(-len(text) // CHARACTERS_PER_TOKEN) for text in (prompt, answer))
        details = {}
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received} | details
