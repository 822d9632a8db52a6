"""Keeping track of what somebody has to do."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from memory.records import TaskStatus
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.memories import none_if_blank


def _aware(value: datetime | None) -> datetime | None:
    return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


async def update_task(
    turn: TurnContext,
    id: Annotated[
        str | None,
        BeforeValidator(none_if_blank),
        Field(default=None, description="the task's id; null for a new task"),
    ],
    description: Annotated[str, Field(max_length=1000, description="what is to be done")],
    status: Annotated[TaskStatus, Field(default="open")],
    due: Annotated[
        datetime | None,
        BeforeValidator(none_if_blank),
        AfterValidator(_aware),
        Field(description="when, ISO 8601 with its offset"),
    ] = None,
) -> dict[str, Any]:
    """Note a task of the person, or change one: what they have to do or want to be reminded of."""
    if turn.user is None:
        raise ToolFailed("this person is anonymous: no task can be kept for them")
    if id is None and not description.strip():
        raise TryAgain("description: a new task needs one")
    place = "" if turn.place.private else turn.place.key
    task = await turn.tasks.put(turn.user, description, status, id=id, due=due, place=place, now=turn.clock())
    return {
        "id": task.id,
        "description": task.description,
        "status": task.status,
        "due": task.due.isoformat() if task.due else None,
    }
