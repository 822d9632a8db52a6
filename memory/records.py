"""Records of memories, messages and documents: one frozen public type for each concept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

MemoryType = Literal["fact", "preference", "insight"]
Source = Literal["conversation", "chat", "note"]
Action = Literal["add", "merge", "replace", "ignore"]
TaskStatus = Literal["open", "in_progress", "done"]
Role = Literal["user", "assistant"]
HitKind = Literal["memory", "message", "summary"]
ForgetKind = Literal["memory", "message", "entry", "task", "conversation"]
"""The kinds of rows that a person can forget."""

DEFAULT_IMPORTANCE = 0.5
MAX_CONTENT = 2_000
"""The most characters of one memory. A fact is a sentence; anything longer is a document."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A proposed memory from the model or a caller, before any decision."""

    content: str
    subjects: tuple[str, ...] = ()
    ttl: str | None = None
    """How long the memory is valid (``7d``); None is for ever. Parsed by `memory.text.ttl`."""
    type: MemoryType = "fact"
    importance: float = DEFAULT_IMPORTANCE
    """0.0 to 1.0."""
    replaces: str | None = None
    """The id of the memory that this one corrects."""
    for_good: bool = False
    """Whether the older memory stays superseded when this one expires, because a person corrected it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. All times are aware UTC."""

    id: str
    content: str
    subjects: tuple[str, ...]
    created_at: datetime
    """When somebody stated it, also for imported messages."""
    expires_at: datetime | None
    source: Source
    type: MemoryType
    importance: float
    last_accessed_at: datetime | None
    uses: int
    """How often a search has recalled it."""
    user_id: str
    """The user who stated it."""
    place: str
    """The place where it was learned, ``dm`` for a private conversation."""
    message_id: str | None
    """The id of the message that states it."""
    owners: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of remembering one new memory, and its reason."""

    content: str
    action: Action
    id: str | None
    """The id of the memory that states the fact now; None if it was dropped."""
    reason: str
    target_id: str | None = None
    """The id of the older memory that was superseded, merged into, or already states the fact."""
    expires_at: datetime | None = None
    close: tuple[Memory, ...] = ()
    """Similar memories that stay unchanged. The model may correct them with `replaces`."""


@dataclass(frozen=True, slots=True)
class ForgetCandidate:
    """A row that a person may mean when they ask to forget something. It stays until they confirm."""

    id: str
    kind: ForgetKind
    content: str
    created_at: datetime
    asked_in: str = ""
    """The id of the message that asks for it, which is forgotten too; empty if there is none."""
    sure: bool = False
    """Whether it is the only fact that matches or, if there is no fact, the only message."""
    messages: tuple[str, ...] = ()
    """The whole texts of the person's messages in its cascade."""
    replies: int = 0
    """How many replies are in its cascade."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the transcript."""

    id: str
    conversation_id: str
    role: Role
    author: str
    """The author's name, as others in the place see it."""
    text: str
    sent_at: datetime
    follows: str | None = None
    """The id of the earlier message that a client went back to; "" if the client began anew; else None."""
    asks: Sequence[Sequence[str]] | None = field(default=None, hash=False)
    """The kinds and ids of the rows that the reply offers to forget; None if it offers nothing."""
    gone: bool = False
    """Whether a client's edit replaced it. Only `Transcript.branches` returns such messages."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that belong together, as far as somebody may read them."""

    id: str
    place: str
    """The place, ``dm`` in private."""
    title: str
    """The beginning of its first message."""
    messages: int
    """How many messages may be read."""
    started_at: datetime
    last_at: datetime
    newest: str
    """The id of its newest message."""
    summary: str = ""
    """Empty if there is none yet, or if the audience may not read it."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The receipt of a forgetting: the forgotten rows, and until when it can be undone."""

    memory: Memory | None
    """The memory that was named; None if something else was."""
    memories: tuple[Memory, ...] = ()
    """All forgotten memories: the named one and those it had superseded, or those of the named message."""
    messages: int = 0
    """How many of the person's messages were forgotten."""
    replies: int = 0
    """How many replies were forgotten."""
    kept: tuple[str, ...] = ()
    """The ids of replies that stay although they were written from a forgotten row."""
    tasks: int = 0
    """How many tasks were forgotten."""
    entries: int = 0
    """How many profile entries were forgotten."""
    summaries: int = 0
    """How many summaries were emptied, to be rewritten from the remaining messages."""
    traces: int = 0
    """How many traces lost their content."""
    undo_id: str | None = None
    """For `pet.memories.undo_forget`; None if forgetting cannot be undone."""
    undo_until: datetime | None = None
    text: str = ""
    """The text of the named row, if it is no memory."""
    elsewhere: str = ""
    """A description of copies that Hachi cannot delete."""
    offered: tuple[ForgetCandidate, ...] = ()
    """Rows to offer as well: entries and tasks that rest on the forgotten messages, and related rows."""

    @property
    def id(self) -> str:
        """Return the id of the memory that was named; empty if something else was."""
        return self.memory.id if self.memory else ""

    @property
    def content(self) -> str:
        """Return the text of the named row."""
        return self.memory.content if self.memory else self.text


@dataclass(frozen=True, slots=True)
class Remainder:
    """Rows that remain after an erasure, or that could not be reached."""

    kind: str
    count: int
    why: str
    expected: bool
    """False if it should have been deleted; the erasure is then not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt of an erasure. It contains the person's id and none of their statements."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """The number of deleted items, by kind."""
    left: tuple[Remainder, ...]
    verified: bool
    """True if tables and indexes were counted afterwards and contain no row that should be deleted."""
    out_of_reach: tuple[str, ...] = ()
    """Other places with their data, where Hachi cannot delete it."""

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self) | {"removed": dict(self.removed), "at": self.at.isoformat()}
        return whole | {"left": [asdict(remainder) for remainder in self.left]}


@dataclass(frozen=True, slots=True)
class Task:
    """A thing that a person has to do."""

    id: str
    user_id: str
    description: str
    status: TaskStatus
    created_at: datetime
    last_updated: datetime
    due: datetime | None = None
    reminded: datetime | None = None
    """The due time that was announced. A different due time is announced again."""


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """A step of the history: which memory superseded which, when and why. Searches never read it."""

    id: str
    user_id: str
    old_id: str
    new_id: str | None
    reason: str
    created_at: datetime
    old_content: str
    new_content: str | None
    old_message_id: str | None = None
    """The id of the message that states the old memory, if any."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: a memory, a message of the transcript, or a conversation's summary."""

    id: str
    kind: HitKind
    content: str
    score: float
    """0.0 to 1.0, comparable within one search."""
    created_at: datetime
    message_id: str | None = None
    author: str | None = None
    memory: Memory | None = None
    origin: str = ""
    """The place or linked account that it is from, if it is read in private. Empty for rows of the reader or
    of the place that they are in."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file in the document library."""

    id: str
    owner: str
    """The owner key, as in `memory.audience`: ``user:U``, ``place:P`` or ``global``."""
    path: str
    """The path that it was read from."""
    title: str
    added_at: datetime
    chunks: int
    """The number of its chunks."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, as a search returns it."""

    id: str
    text: str
    source: str
    """The document's path."""
    chunk_index: int
    """From 0, in the document's order."""
    title: str
    heading: str
    """The headings above the chunk, outermost first, joined by `` > ``; empty above the first."""
    score: float = 0.0
    """0.0 to 1.0, comparable within one search."""
