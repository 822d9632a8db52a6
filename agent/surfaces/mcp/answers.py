"""The structured answers of the tools."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from memory.documents.quote import display_names
from memory.records import Action, Chunk, Task, TaskStatus


class Answer(BaseModel):
    """Serialized without the fields that are null."""

    model_config = ConfigDict(from_attributes=True)

    @model_serializer(mode="wrap")
    def _without_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class FoundMemory(Answer):
    """A fact, the summary of a conversation, or an excerpt of one."""

    kind: Literal["memory", "summary", "messages"]
    at: Annotated[str, Field(description="by the person's clock")]
    id: Annotated[str | None, Field(description="of a fact, or how it begins")] = None
    content: str | None = None
    subjects: list[str] | None = None
    expires: str | None = None
    told_by: Annotated[str | None, Field(description="who told it, in a shared place")] = None
    lines: Annotated[
        list[str] | None, Field(description="of the excerpt; those that begin with ~ were not found")
    ] = None
    ids: Annotated[list[str] | None, Field(description="of the found messages, in order")] = None


class FoundMemories(Answer):
    memories: list[FoundMemory]
    newest: Annotated[list[FoundMemory] | None, Field(description="where nothing was found")] = None
    more: Annotated[str | None, Field(description="how much else matches")] = None
    note: str | None = None
    also_known_as: list[str] | None = None


class MemoryContent(Answer):
    id: str
    content: str


class ForgottenMemory(MemoryContent):
    """What was forgotten: the memory or the message that was named, and how many messages, replies, tasks,
    summaries and traces went with it. The id is empty if a message was named."""

    messages: int
    replies: int
    tasks: int
    summaries: int
    traces: int
    undo_id: str | None = None
    undo_until: datetime | None = None
    near: Annotated[
        list[MemoryContent], Field(description="other memories near it that stay: ask about them")
    ] = []


class RememberResult(Answer):
    action: Action
    id: Annotated[str | None, Field(description="the memory that holds it; none if it was dropped")] = None
    content: str
    reason: str
    expires_at: datetime | None = None
    close: Annotated[list[MemoryContent], Field(description="similar memories that were left unchanged")] = []
    note: str | None = None


class Passage(Answer):
    source: Annotated[str, Field(description="the document's name, with its folder")]
    heading: str
    text: str
    score: float


class Passages(Answer):
    passages: list[Passage]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Self:
        """Sources are shortened to name and folder. The rest of the path is private to the server."""
        names = display_names(chunk.source for chunk in chunks)
        shown = (replace(c, source=names[c.source], score=round(c.score, 2)) for c in chunks)
        return cls(passages=[Passage.model_validate(chunk) for chunk in shown])


class TaskAnswer(Answer):
    id: str
    description: str
    status: TaskStatus
    due: datetime | None = None

    @classmethod
    def of(cls, task: Task, zone: tzinfo) -> Self:
        """`due` is in the person's time zone."""
        return cls.model_validate(replace(task, due=task.due.astimezone(zone) if task.due else None))


class TaskChange(Answer):
    action: Literal["made", "changed", "unchanged"]
    task: TaskAnswer
    close: Annotated[list[TaskAnswer], Field(description="open tasks that resemble a new one")] = []


class Tasks(Answer):
    tasks: list[TaskAnswer]
