"""Write a response of OpenAI's Responses API, whole or as the events of a stream."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from agent.surfaces.http.openai_api.completion import MODEL, Extra, extra_fields, usage_of
from agent.types import Reply

Json = dict[str, Any]


class ResponseJson(Extra):
    """A response that is not streamed. It repeats the parameters of the request."""

    id: str
    object: Literal["response"]
    status: Literal["completed", "incomplete", "in_progress"]
    output: list[Json]
    usage: Json | None


@dataclass(frozen=True, slots=True)
class ResponseEvents:
    id: str
    created: int
    """Seconds since 1970."""
    asked: Json
    """The fields of the request that a response repeats."""
    prompt: str = ""
    note: str | None = None
    _numbers: Iterator[int] = field(default_factory=count)
    _pieces: list[str] = field(default_factory=list)
    """The pieces of the text; empty until the text begins."""

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the response's id, so that `previous_response_id` finds the turn."""
        return (f"response:{self.id}",)

    def whole(self, text: str, reply: Reply | None = None) -> Json:
        cut = bool(reply and reply.cut)
        counted = usage_of(self.prompt, text, reply)
        cached = counted.get("prompt_tokens_details", {"cached_tokens": 0})
        usage = {
            "input_tokens": counted["prompt_tokens"],
            "input_tokens_details": cached,
            "output_tokens": counted["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counted["total_tokens"],
        }
        output = [self._message(text)] if text or not (reply and reply.client_calls) else []
        output += self._calls(reply)
        ended = {
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": output,
            "usage": usage,
        }
        return self._response() | ended | extra_fields(reply, self.note)

    def begin(self) -> Iterator[Json]:
        """Yield the events before the text."""
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=self._response())

    def piece(self, text: str) -> Iterator[Json]:
        here = {"item_id": self._item, "output_index": 0, "content_index": 0}
        if not self._begun:
            empty = self._message("") | {"status": "in_progress", "content": []}
            yield self._event("response.output_item.added", output_index=0, item=empty)
            yield self._event("response.content_part.added", **here, part=_part(""))
            self._pieces.append("")
        yield self._event("response.output_text.delta", **here, delta=text, logprobs=[])

    def thought(self, _: str) -> Iterator[Json]:
        """Yield nothing: no client that was tried handles events for thoughts."""
        return iter(())

    def end(self, text: str, reply: Reply | None = None) -> Iterator[Json]:
        """Yield the events after the text: the end of the text, calls of the client's tools, and the
        response."""
        here = {"item_id": self._item, "output_index": 0, "content_index": 0}
        if self._begun:
            yield self._event("response.output_text.done", **here, text=text, logprobs=[])
            yield self._event("response.content_part.done", **here, part=_part(text))
            yield self._event("response.output_item.done", output_index=0, item=self._message(text))
        for at, call in enumerate(self._calls(reply), len(self._pieces)):
            here = {"item_id": call["id"], "output_index": at}
            started = call | {"arguments": "", "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=at, item=started)
            yield self._event("response.function_call_arguments.delta", **here, delta=call["arguments"])
            done = {"arguments": call["arguments"], "name": call["name"]}
            yield self._event("response.function_call_arguments.done", **here, **done)
            yield self._event("response.output_item.done", output_index=at, item=call)
        whole = self.whole(text, reply)
        yield self._event(f"response.{whole['status']}", response=whole)

    @property
    def _begun(self) -> bool:
        return bool(self._pieces)

    @property
    def _item(self) -> str:
        return self.id.replace("resp_", "msg_")

    def _event(self, type: str, **data: Any) -> Json:
        number = next(self._numbers)
        return {"event": type, "data": json.dumps({"type": type, "sequence_number": number, **data})}

    def _response(self) -> Json:
        given = self.asked
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": given.get("instructions"),
            "max_output_tokens": given.get("max_output_tokens"),
            "metadata": given.get("metadata") or {},
            "model": MODEL,
            "output": [],
            "parallel_tool_calls": given.get("parallel_tool_calls", True),
            "previous_response_id": given.get("previous_response_id"),
            "temperature": given.get("temperature"),
            "text": given.get("text") or {"format": {"type": "text"}},
            "tool_choice": given.get("tool_choice", "auto"),
            "tools": given.get("tools") or [],
            "top_p": given.get("top_p"),
            "truncation": "disabled",
            "usage": None,
        }

    def _message(self, text: str) -> Json:
        about = {"id": self._item, "type": "message", "role": "assistant", "status": "completed"}
        return about | {"content": [_part(text)]}

    def _calls(self, reply: Reply | None) -> list[Json]:
        return [
            {
                "id": self.id.replace("resp_", f"fc_{at}_"),
                "type": "function_call",
                "status": "completed",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments,
            }
            for at, call in enumerate(reply.client_calls if reply else ())
        ]


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
