"""What is remembered, as plain records: one public type a concept, frozen."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

MemoryType = Literal["fact", "preference", "insight"]
Source = Literal["conversation", "chat", "note"]
Action = Literal["add", "merge", "replace", "ignore"]
TaskStatus = Literal["open", "in_progress", "done"]
Role = Literal["user", "assistant"]

DEFAULT_IMPORTANCE = 0.5


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as it is proposed, by the model or a caller, before anything is decided."""

    content: str
    subjects: tuple[str, ...] = ()
    ttl: str | None = None
    """How long it holds, in readable form (``7d``); None is for ever. Read by `memory.facts.ttl`."""
    type: MemoryType = "fact"
    importance: float = DEFAULT_IMPORTANCE
    """0.0 to 1.0."""
    replaces: str | None = None
    """The id of the memory that this one corrects."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is kept. All times are aware UTC."""

    id: str
    content: str
    subjects: tuple[str, ...]
    created_at: datetime
    """When it was said, which for an imported transcript lies in the past."""
    expires_at: datetime | None
    source: Source
    type: MemoryType
    importance: float
    last_accessed_at: datetime | None
    uses: int
    """How often it was recalled."""
    user_id: str
    """Who said it."""
    place: str
    """Where it was learned, ``dm`` for in private."""
    message_id: str | None
    """The message it came from: its evidence."""
    owners: frozenset[str] = field(default_factory=frozenset)


_PUBLIC_FIELDS = (
    *("id", "content", "subjects", "created_at", "expires_at", "source", "type", "importance"),
    *("last_accessed_at", "owners", "place", "message_id"),
)


def memory_json(memory: Memory | None) -> dict[str, Any]:
    """The fields that exports and surfaces show; without a memory all are null, and there are no subjects."""
    if memory is None:
        return dict.fromkeys(_PUBLIC_FIELDS) | {"subjects": []}
    return {field: getattr(memory, field) for field in _PUBLIC_FIELDS}


@dataclass(frozen=True, slots=True)
class Decision:
    """What remembering did with one draft, and why."""

    content: str
    action: Action
    id: str | None
    """The memory that now says it; None where the draft was dropped."""
    reason: str
    target_id: str | None = None
    """The older memory that was replaced, merged into or found to say it already."""
    expires_at: datetime | None = None
    close: tuple[Memory, ...] = ()
    """What resembled it and was left as it is, so that the model can correct with `replaces`."""


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the transcript."""

    id: str
    conversation_id: str
    role: Role
    author: str
    """Who wrote it, as shown to the others in the place."""
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    user_id: str
    description: str
    status: TaskStatus
    created_at: datetime
    last_updated: datetime
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """An audit row: what replaced what, when and why. Never read for retrieval."""

    id: str
    user_id: str
    old_id: str
    new_id: str | None
    reason: str
    created_at: datetime
    old_content: str
    new_content: str | None


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found by a search: a memory, a message of the transcript, or a conversation's summary."""

    id: str
    kind: Literal["memory", "message", "summary"]
    content: str
    score: float
    """0.0 to 1.0, comparable within one search."""
    created_at: datetime
    message_id: str | None = None
    author: str | None = None
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A file that the companion was given to look things up in."""

    id: str
    owner: str
    """Who may read it: one key of `memory.audience`, ``user:U``, ``place:P`` or ``global``."""
    path: str
    """Where it was read from."""
    title: str
    added_at: datetime
    chunks: int
    """How many pieces it was cut into."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, as a search brings it."""

    id: str
    text: str
    source: str
    """The document's path."""
    chunk_index: int
    """From 0, in the document's order."""
    title: str
    heading: str
    """The headings it stands under, outermost first, joined by `` > ``; empty above the first."""
    score: float = 0.0
    """0.0 to 1.0, comparable within one search."""
