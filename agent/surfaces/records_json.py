"""Records as the JSON that the command line and the HTTP API print."""

from dataclasses import asdict
from typing import Any

from memory.records import Decision, Forgotten, Hit, MemoryUpdate, Message, Task, memory_json
from memory.text.short_ids import SHORT_ID


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


def message_json(message: Message) -> dict[str, Any]:
    """A forgotten message has no text, and `forgotten_at`."""
    return {name: value for name, value in asdict(message).items() if name != "follows"}


def forgotten_json(receipt: Forgotten) -> dict[str, Any]:
    """What a forgetting took: the ids of the memories, and how many of the rest; and what stays near it."""
    return {
        "memories": [memory.id for memory in receipt.memories],
        "messages": receipt.messages,
        "replies": receipt.replies,
        "unverified": len(receipt.kept),
        "kept": receipt.kept,
        "tasks": receipt.tasks,
        "summaries": receipt.summaries,
        "traces": receipt.traces,
        "undo_id": receipt.undo_id,
        "undo_until": receipt.undo_until,
        "near": [{"id": memory.id, "content": memory.content} for memory in receipt.near],
    }


def taken_with(receipt: Forgotten) -> str:
    """Say in words what was taken: "2 memories, 3 messages, 1 reply"."""
    counts = {
        ("memory", "memories"): len(receipt.memories),
        ("message", "messages"): receipt.messages,
        ("reply", "replies"): receipt.replies,
        ("task", "tasks"): receipt.tasks,
        ("summary", "summaries"): receipt.summaries,
        ("trace", "traces"): receipt.traces,
    }
    told = [f"{count} {one if count == 1 else many}" for (one, many), count in counts.items() if count]
    kept = " ".join(id[:SHORT_ID] for id in receipt.kept)
    return ", ".join(told) + (f"; replies kept that may tell it in other words: {kept}" if kept else "")


def update_json(update: MemoryUpdate) -> dict[str, Any]:
    return asdict(update)


def task_json(task: Task) -> dict[str, Any]:
    return asdict(task)
