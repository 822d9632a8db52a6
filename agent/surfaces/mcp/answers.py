"""What each tool answers with. What is null is left out."""

from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from memory.documents.quote import display_names
from memory.records import Action, Chunk, Decision, Hit, Memory, MemoryType, Task, TaskStatus
from memory.zones import in_zone
from tools.memories import LONGEST_HIT


class Answer(BaseModel):
    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class Found(Answer):
    """A fact, a past message, or the summary of a conversation."""

    id: str
    kind: Literal["memory", "message", "summary"]
    content: str
    created_at: datetime
    score: Annotated[float, Field(description="0 to 1, comparable within one search")]
    author: str | None = None
    subjects: list[str] | None = None
    type: MemoryType | None = None
    importance: float | None = None
    expires_at: datetime | None = None

    @classmethod
    def of(cls, hit: Hit) -> "Found":
        found = cls(
            id=hit.id,
            kind=hit.kind,
            content=_excerpt(hit.content),
            created_at=hit.created_at,
            score=round(hit.score, 2),
            author=hit.author,
        )
        if hit.memory is None:
            return found
        return found.model_copy(
            update={
                "subjects": list(hit.memory.subjects),
                "type": hit.memory.type,
                "importance": hit.memory.importance,
                "expires_at": hit.memory.expires_at,
            }
        )


class Memories(Answer):
    memories: list[Found]


class Near(Answer):
    id: str
    content: str


class Decided(Answer):
    action: Action
    id: Annotated[str | None, Field(description="the memory that says it now; none where it was dropped")] = (
        None
    )
    content: str
    reason: str
    expires_at: datetime | None = None
    close: Annotated[list[Near], Field(description="what is like it and was left as it is")] = []
    note: str | None = None

    @classmethod
    def of(cls, decision: Decision, note: str | None) -> "Decided":
        return cls(
            action=decision.action,
            id=decision.id,
            content=decision.content,
            reason=decision.reason,
            expires_at=decision.expires_at,
            close=[Near(id=memory.id, content=memory.content) for memory in decision.close],
            note=note,
        )


class Passage(Answer):
    source: Annotated[str, Field(description="the document's name, with its folder")]
    heading: str
    text: str
    score: float


class Passages(Answer):
    passages: list[Passage]

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> "Passages":
        """Documents go by name and folder: how the rest of the disk is laid out is nobody's business."""
        found = list(chunks)
        names = display_names(chunk.source for chunk in found)
        return cls(
            passages=[
                Passage(
                    source=names[chunk.source],
                    heading=chunk.heading,
                    text=chunk.text,
                    score=round(chunk.score, 2),
                )
                for chunk in found
            ]
        )


class Shown(Answer):
    """A task; its due time is by the person's clock."""

    id: str
    description: str
    status: TaskStatus
    due: datetime | None = None

    @classmethod
    def of(cls, task: Task, zone: tzinfo) -> "Shown":
        due = in_zone(task.due, zone) if task.due else None
        return cls(id=task.id, description=task.description, status=task.status, due=due)


class Changed(Answer):
    action: Literal["made", "changed", "unchanged"]
    task: Shown
    close: Annotated[list[Shown], Field(description="open tasks that a new one resembles")] = []


class Tasks(Answer):
    tasks: list[Shown]


class Forgotten(Answer):
    id: str
    content: str

    @classmethod
    def of(cls, memory: Memory) -> "Forgotten":
        return cls(id=memory.id, content=memory.content)


def _excerpt(text: str) -> str:
    """A pasted page that a search brings back is not to fill the prompt."""
    if len(text) <= LONGEST_HIT:
        return text
    return f"{text[:LONGEST_HIT]} … ({len(text) - LONGEST_HIT:,} more characters)"
