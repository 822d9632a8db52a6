"""The shapes of an answer in OpenAI's API, whole and in chunks, and what stands beside: the memories."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tracing.trace import Usage
from agent.types import Reply, ToolCall
from memory.records import Decision, Memory

MODEL = "hachi"
"""The one model there is; which language model answers is the operator's choice."""

RECALLING = frozenset({"search_memories", "get_recent_memories"})
"""The tools that bring memories."""

CHARACTERS_A_TOKEN = 4

EXAMPLE: dict[str, Any] = {
    "id": "chatcmpl-8f14e45fceea167a5a36dedd4bea2543",
    "object": "chat.completion",
    "created": 1795252200,
    "model": MODEL,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "No pesto for Lucie: pine nuts are risky for her."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
    "memories": [
        {
            "id": "5c5bbe71-7424-41d9-a005-4e9ca1c83848",
            "content": "Mickael's sister Lucie is allergic to nuts",
            "use": "used",
            "kind": "memory",
            "score": 0.71,
        },
        {
            "id": "0f7f2b0e-2f0c-4a7c-9b70-0b8a3ab0c0c7",
            "content": "Lucie comes to dinner on Friday",
            "use": "learned",
            "action": "add",
            "expires_at": "2026-11-29T09:10:00+00:00",
        },
    ],
    "trace_id": "trace_527e566f1fec42b3b9fd3bdc0df60eaf",
}


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer on its way."""

    id: str
    created: int
    """Seconds since 1970."""

    def whole(
        self, text: str, asked: str, reply: Reply | None = None, shown: Sequence[Memory] = ()
    ) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "logprobs": None,
            "finish_reason": "stop",
        }
        used = {"usage": usage(asked, text, reply)}
        return self._frame("chat.completion", [choice]) | used | beside(reply, shown)

    def begin(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        return self._chunk({"content": text})

    def end(self, reply: Reply | None = None, shown: Sequence[Memory] = ()) -> str:
        return self._chunk({}, "stop", beside(reply, shown))

    def used(self, asked: str, text: str, reply: Reply | None = None) -> str:
        """The chunk that tells the usage, where it is wanted; it has no choices."""
        return json.dumps(self._frame("chat.completion.chunk", []) | {"usage": usage(asked, text, reply)})

    def _chunk(
        self, delta: dict[str, str], ended: str | None = None, more: dict[str, Any] | None = None
    ) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}
        return json.dumps(self._frame("chat.completion.chunk", [choice]) | (more or {}))

    def _frame(self, kind: str, choices: list[Any]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": MODEL,
            "choices": choices,
        }


def beside(reply: Reply | None, shown: Sequence[Memory] = ()) -> dict[str, Any]:
    """What OpenAI's API does not have: the memories, and the id under which the log has the turn."""
    if reply is None:
        return {"memories": []}
    return {"memories": [*used(reply, shown), *map(learned, reply.memories)], "trace_id": reply.trace_id}


def used(reply: Reply, shown: Sequence[Memory]) -> list[dict[str, Any]]:
    """What the model had before it and what it looked up, each once."""
    before = {fact.id: {"id": fact.id, "content": fact.content, "kind": "memory"} for fact in shown}
    found = {hit["id"]: hit for call in reply.tools for hit in recalled(call)}
    return [
        {"id": id, "content": hit.get("content"), "use": "used"}
        | {"kind": hit.get("kind"), "score": hit.get("score")}
        for id, hit in (before | found).items()
    ]


def recalled(call: ToolCall) -> Iterator[dict[str, Any]]:
    """What a tool call brought back from memory."""
    if call.name not in RECALLING or not call.ok:
        return
    try:
        result = json.loads(call.result)
    except ValueError:
        return
    for hit in result.get("memories", ()) if isinstance(result, dict) else ():
        if isinstance(hit, dict) and "id" in hit:
            yield hit


def learned(decision: Decision) -> dict[str, Any]:
    expires = decision.expires_at
    return {
        "id": decision.id,
        "content": decision.content,
        "use": "learned",
        "action": decision.action,
        "expires_at": expires.isoformat() if expires else None,
    }


def usage(asked: str, answered: str, reply: Reply | None = None) -> dict[str, Any]:
    """What the model's server counted for all calls of the turn; where it did not count, an estimate of what
    the client sent and got."""
    counted = reply.usage if reply else Usage()
    if counted != Usage():
        cached = {"prompt_tokens_details": {"cached_tokens": counted.cached}}
        return _adding_up(counted.input, counted.output) | cached
    return _adding_up(*(-(-len(text) // CHARACTERS_A_TOKEN) for text in (asked, answered)))


def _adding_up(prompt: int, completion: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
