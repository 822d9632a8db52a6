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
"""What a person can forget: a fact, a message, an entry of their profile, a task, a whole conversation."""

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
    """The id of the memory that this one takes the place of."""
    for_good: bool = False
    """Whether a person corrects that memory: it does not hold again either where this one ends."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. All times are aware UTC."""

    id: str
    content: str
    subjects: tuple[str, ...]
    created_at: datetime
    """When somebody stated it. For an imported transcript this lies in the past."""
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
    """The id of the message it came from: its evidence."""
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
    """The id of the older memory that was replaced, merged into or found to state the fact already."""
    expires_at: datetime | None = None
    close: tuple[Memory, ...] = ()
    """Similar memories that stay unchanged. The model may correct them with `replaces`."""


@dataclass(frozen=True, slots=True)
class ForgetCandidate:
    """What a person may mean when they ask to forget something. It stays until they confirm."""

    id: str
    kind: ForgetKind
    content: str
    created_at: datetime
    asked_in: str = ""
    """The id of the message that asks, which is forgotten too; empty if none did."""
    sure: bool = False
    """Whether it is the only fact that was found or, where none was, the only message."""
    messages: tuple[str, ...] = ()
    """The texts of the person's messages that go with it, whole."""
    replies: int = 0
    """How many of Hachi's replies go with it."""


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the transcript."""

    id: str
    conversation_id: str
    role: Role
    author: str
    """The author's name, as others in the place see it."""
    text: str
    sent_at: datetime
    follows: str | None = None
    """The message that it follows, where a client went back to an earlier one; empty if it began anew."""
    asks: Sequence[Sequence[str]] | None = field(default=None, hash=False)
    """What the reply asks whether to forget, each by kind and id; None where it asks nothing."""
    gone: bool = False
    """Whether another message took its place in a client's history; False in every read but that of its
    branches."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that belong together, as far as somebody may read them."""

    id: str
    place: str
    """Where it is held, ``dm`` in private."""
    title: str
    """How its first message begins."""
    messages: int
    """How many may be read."""
    started_at: datetime
    last_at: datetime
    newest: str
    """The id of its newest message."""
    summary: str = ""
    """Empty where none is written yet, or its readers are others."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The receipt of a forgetting: what was taken, and until when it can be undone."""

    memory: Memory | None
    """The memory that was named; None if something else was."""
    memories: tuple[Memory, ...] = ()
    """All memories that went: the named one and what it had replaced, or those of the named message."""
    messages: int = 0
    """How many of the person's messages went."""
    replies: int = 0
    """How many of Hachi's replies went."""
    kept: tuple[str, ...] = ()
    """The ids of Hachi's replies that stay although they were written with it in view."""
    tasks: int = 0
    """How many tasks went."""
    entries: int = 0
    """How many entries of the profile went."""
    summaries: int = 0
    """How many summaries were emptied, to be written again from what is left."""
    traces: int = 0
    """Traces that lost their content."""
    undo_id: str | None = None
    """For `pet.memories.undo_forget`; None if forgetting cannot be undone."""
    undo_until: datetime | None = None
    text: str = ""
    """The text of what was named, if it is no memory."""
    elsewhere: str = ""
    """Where a copy is that Hachi cannot reach, in words."""
    offered: tuple[ForgetCandidate, ...] = ()
    """What may be forgotten too: entries and tasks that rest on the messages that went, and what looks
    related."""

    @property
    def id(self) -> str:
        """Return the id of the memory that was named; empty if something else was."""
        return self.memory.id if self.memory else ""

    @property
    def content(self) -> str:
        """Return the text of what was named."""
        return self.memory.content if self.memory else self.text


@dataclass(frozen=True, slots=True)
class Remainder:
    """What was counted after the erasure, or could not be reached."""

    kind: str
    count: int
    why: str
    expected: bool
    """False if it should have been deleted; the erasure is then not verified."""


@dataclass(frozen=True, slots=True)
class Erased:
    """The receipt. It names the person once, so that they can have it, and none of their statements."""

    user: str
    at: datetime
    removed: Mapping[str, int]
    """The number of deleted items, by kind."""
    left: tuple[Remainder, ...]
    verified: bool
    """True if the tables and the indexes were counted afterwards, and hold nothing that should have gone."""
    out_of_reach: tuple[str, ...] = ()
    """What else may hold their data, where Hachi cannot delete it."""

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
    """The due time that was announced; another one will be."""


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """One step of the history: what replaced what, when and why. Searches never read it."""

    id: str
    user_id: str
    old_id: str
    new_id: str | None
    reason: str
    created_at: datetime
    old_content: str
    new_content: str | None
    old_message_id: str | None = None
    """The message from which the old memory was learned, if it was learned from one."""


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
    """Where it is from: the place that is read in private, or the linked account, whose it is. Empty for what
    is the reader's own, and for what stands where they are."""


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
