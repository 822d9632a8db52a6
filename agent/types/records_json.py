"""Records as the JSON that every surface shows: the command line's `--json`, REST, MCP and exports.

The names of these fields are contracts. Tasks, documents, passages and steps of a history are shown as their
records are (`memory.records`), with all fields.
"""

from datetime import datetime

from typing_extensions import TypedDict

from memory.people.profile import Preferences, Profile
from memory.records import (
    Action,
    Decision,
    Forgotten,
    Hit,
    HitKind,
    Memory,
    MemoryType,
    Message,
    Role,
    Source,
    TaskStatus,
)
from memory.text.short_ids import SHORT_ID


class MemoryJson(TypedDict):
    id: str
    content: str
    subjects: list[str]
    created_at: datetime
    expires_at: datetime | None
    source: Source
    type: MemoryType
    importance: float
    last_accessed_at: datetime | None
    owners: list[str]
    place: str
    message_id: str | None


class HitJson(TypedDict):
    """What a search found. A message or a summary has null where only a memory has something."""

    id: str
    kind: HitKind
    content: str
    score: float
    created_at: datetime
    message_id: str | None
    author: str | None
    subjects: list[str]
    expires_at: datetime | None
    source: Source | None
    type: MemoryType | None
    importance: float | None
    last_accessed_at: datetime | None
    owners: list[str] | None
    place: str | None


class DecisionJson(TypedDict):
    """`id` is of the memory that states it now; null if nothing was kept. `target_id` is of the older one
    that was replaced, merged into or found to state it already."""

    content: str
    action: Action
    id: str | None
    expires_at: datetime | None
    reason: str
    target_id: str | None


class MessageJson(TypedDict):
    """A forgotten message has no text, and `forgotten_at`."""

    id: str
    conversation_id: str
    role: Role
    author: str
    text: str
    sent_at: datetime
    forgotten_at: datetime | None
    replaced_at: datetime | None


class NearJson(TypedDict):
    id: str
    content: str


class ForgottenJson(TypedDict):
    """What a forgetting took: the `content` that was named, the ids of the memories, and how many of the
    rest; and what stays near it. `kept` are replies that may tell it in other words."""

    content: str
    memories: list[str]
    messages: int
    replies: int
    unverified: int
    kept: list[str]
    tasks: int
    summaries: int
    traces: int
    undo_id: str | None
    undo_until: datetime | None
    near: list[NearJson]


class FactJson(TypedDict):
    id: str
    content: str
    subjects: list[str]
    created_at: datetime
    expires_at: datetime | None
    source: Source
    type: MemoryType
    importance: float
    last_accessed_at: datetime | None


class OpenTaskJson(TypedDict):
    id: str
    description: str
    status: TaskStatus
    created_at: datetime
    last_updated: datetime


class ContextJson(TypedDict):
    """What is known of a person, as `UserContext.to_json` has it."""

    profile: Profile
    preferences: Preferences
    long_term_facts: list[FactJson]
    open_tasks: list[OpenTaskJson]
    conversation_themes: list[str]
    memory_summary: str | None
    last_updated: datetime | None


def memory_json(memory: Memory) -> MemoryJson:
    return MemoryJson(
        id=memory.id,
        content=memory.content,
        subjects=list(memory.subjects),
        created_at=memory.created_at,
        expires_at=memory.expires_at,
        source=memory.source,
        type=memory.type,
        importance=memory.importance,
        last_accessed_at=memory.last_accessed_at,
        owners=sorted(memory.owners),
        place=memory.place,
        message_id=memory.message_id,
    )


def hit_json(hit: Hit) -> HitJson:
    known = memory_json(hit.memory) if hit.memory else None
    return HitJson(
        id=hit.id,
        kind=hit.kind,
        content=hit.content,
        score=hit.score,
        created_at=hit.created_at,
        message_id=hit.message_id,
        author=hit.author,
        subjects=known["subjects"] if known else [],
        expires_at=known and known["expires_at"],
        source=known and known["source"],
        type=known and known["type"],
        importance=known and known["importance"],
        last_accessed_at=known and known["last_accessed_at"],
        owners=known and known["owners"],
        place=known and known["place"],
    )


def decision_json(decision: Decision) -> DecisionJson:
    return DecisionJson(
        content=decision.content,
        action=decision.action,
        id=decision.id,
        expires_at=decision.expires_at,
        reason=decision.reason,
        target_id=decision.target_id,
    )


def message_json(message: Message) -> MessageJson:
    return MessageJson(
        id=message.id,
        conversation_id=message.conversation_id,
        role=message.role,
        author=message.author,
        text=message.text,
        sent_at=message.sent_at,
        forgotten_at=message.forgotten_at,
        replaced_at=message.replaced_at,
    )


def forgotten_json(receipt: Forgotten) -> ForgottenJson:
    return ForgottenJson(
        content=receipt.content,
        memories=[memory.id for memory in receipt.memories],
        messages=receipt.messages,
        replies=receipt.replies,
        unverified=len(receipt.kept),
        kept=list(receipt.kept),
        tasks=receipt.tasks,
        summaries=receipt.summaries,
        traces=receipt.traces,
        undo_id=receipt.undo_id,
        undo_until=receipt.undo_until,
        near=[NearJson(id=memory.id, content=memory.content) for memory in receipt.near],
    )


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
