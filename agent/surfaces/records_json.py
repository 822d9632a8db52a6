"""Records as the JSON that the command line and the HTTP API print."""

from dataclasses import asdict
from typing import Any

from memory.records import Decision, Hit, MemoryUpdate, Task, memory_json


def hit_json(hit: Hit) -> dict[str, Any]:
    """The fields of a memory; a message has null where it has none of them."""
    return memory_json(hit.memory) | {
        "id": hit.id,
        "content": hit.content,
        "created_at": hit.created_at,
        "message_id": hit.message_id,
        "score": hit.score,
        "kind": hit.kind,
        "author": hit.author,
    }


def decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "content": decision.content,
        "action": decision.action,
        "id": decision.id,
        "expires_at": decision.expires_at,
    }


def update_json(update: MemoryUpdate) -> dict[str, Any]:
    return asdict(update)


def task_json(task: Task) -> dict[str, Any]:
    return asdict(task)
