"""Records as the JSON that every surface shows: the command line's `--json`, REST, MCP and exports.

The names of these fields are contracts. Conversations, tasks, documents, passages and steps of a history are
shown with all fields of their records (`memory.records`).
"""

from datetime import datetime
from typing import Any, TypeVar, cast

from typing_extensions import TypedDict

from memory.records import (
    Action,
    Decision,
    ForgetCandidate,
    ForgetKind,
    Forgotten,
    Hit,
    HitKind,
    Memory,
    MemoryType,
    Message,
    Role,
    Source,
)

T = TypeVar("T")


class FactJson(TypedDict):
    """A fact in a person's context."""

    id: str
    content: str
    subjects: list[str]
    created_at: datetime
    expires_at: datetime | None
    source: Source
    type: MemoryType
    importance: float
    last_accessed_at: datetime | None


class MemoryJson(FactJson):
    owners: list[str]
    place: str
    message_id: str | None
    user: str
    """Who stated it."""


class HitJson(TypedDict):
    """A search result. Fields that only a memory has are null for messages and summaries."""

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
    """`id` is the memory that now states the fact; null if nothing was stored. `target_id` is the older
    memory that was replaced or merged into, or that states it already."""

    content: str
    action: Action
    id: str | None
    expires_at: datetime | None
    reason: str
    target_id: str | None


class MessageJson(TypedDict):
    id: str
    conversation_id: str
    role: Role
    author: str
    text: str
    sent_at: datetime


class NearJson(TypedDict):
    id: str
    content: str


class OfferedJson(NearJson):
    kind: ForgetKind


class ForgottenJson(TypedDict):
    """The receipt of a forgetting: the `content` to forget, the ids of forgotten memories, and counts of the
    rest. `near` may be forgotten too; `kept` are replies that may repeat the content in other words."""

    content: str
    memories: list[str]
    messages: int
    replies: int
    unverified: int
    kept: list[str]
    tasks: int
    entries: int
    summaries: int
    traces: int
    undo_id: str | None
    undo_until: datetime | None
    near: list[OfferedJson]
    elsewhere: str


def memory_json(memory: Memory) -> MemoryJson:
    lists = {"subjects": [*memory.subjects], "owners": sorted(memory.owners)}
    return _shaped(MemoryJson, memory, user=memory.user_id, **lists)


def hit_json(hit: Hit) -> HitJson:
    memory: dict[str, Any] = {**memory_json(hit.memory)} if hit.memory else {"subjects": []}
    others = {name: memory.get(name) for name in HitJson.__annotations__ if not hasattr(hit, name)}
    return _shaped(HitJson, hit, **others)


def decision_json(decision: Decision) -> DecisionJson:
    return _shaped(DecisionJson, decision)


def message_json(message: Message) -> MessageJson:
    return _shaped(MessageJson, message)


def forgotten_json(receipt: Forgotten) -> ForgottenJson:
    return _shaped(
        ForgottenJson,
        receipt,
        memories=[memory.id for memory in receipt.memories],
        unverified=len(receipt.kept),
        kept=[*receipt.kept],
        near=[_shaped(OfferedJson, one) for one in receipt.offered],
    )


def near_json(memory: Memory) -> NearJson:
    return _shaped(NearJson, memory)


def _shaped(shape: type[T], record: object, **fields: Any) -> T:
    """Return the shape's fields: from `fields`, otherwise from the record."""
    names = shape.__annotations__
    return cast(T, {name: fields[name] if name in fields else getattr(record, name) for name in names})


def describe_cascade(candidate: ForgetCandidate) -> str:
    """Describe the candidate's cascade: "2 messages and 1 reply go with it"; empty if there is none."""
    counts = (("message", "messages", len(candidate.messages)), ("reply", "replies", candidate.replies))
    told = [f"{count} {one if count == 1 else many}" for one, many, count in counts if count]
    return f"{' and '.join(told)} go with it" if told else ""


def describe_forgotten(receipt: Forgotten) -> str:
    """Describe what was forgotten, and where copies remain: "2 memories, 3 messages, 1 reply"."""
    counts = {
        ("memory", "memories"): len(receipt.memories),
        ("message", "messages"): receipt.messages,
        ("reply", "replies"): receipt.replies,
        ("task", "tasks"): receipt.tasks,
        ("profile entry", "profile entries"): receipt.entries,
        ("summary", "summaries"): receipt.summaries,
        ("trace", "traces"): receipt.traces,
    }
    told = [f"{count} {one if count == 1 else many}" for (one, many), count in counts.items() if count]
    return "; ".join(filter(None, (", ".join(told), receipt.elsewhere)))
