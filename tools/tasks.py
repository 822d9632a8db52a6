"""The tool that adds and changes a person's tasks."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field

from memory.errors import NotFound
from memory.people.due_dates import read_due
from memory.people.tasks import Change, Due, bare_id
from memory.records import TaskStatus
from memory.text.quoting import SHORT_ID
from tools.context import TurnContext
from tools.failures import ToolFailed, TryAgain
from tools.memories import none_if_blank, stored


def _choices(schema: dict[str, Any]) -> None:
    """Show the model only the choices; null is accepted without being listed."""
    schema.pop("anyOf", None)
    schema.update(type="string", enum=[*get_args(TaskStatus)])


async def update_task(
    turn: TurnContext,
    id: Annotated[
        str | None, BeforeValidator(bare_id), Field(default=None, description="null for a new one")
    ],
    description: Annotated[str, Field(max_length=1000, description="empty keeps it")],
    status: Annotated[
        TaskStatus | None,
        BeforeValidator(none_if_blank),
        Field(default=None, json_schema_extra=_choices),
    ],
    due: Annotated[
        str | None,
        BeforeValidator(none_if_blank),
        Field(description='"in 20 minutes" or ISO 8601 by their clock; "never" removes it'),
    ] = None,
) -> dict[str, Any]:
    """Keep what the person has to do or be reminded of. Without an id: the open task in these words, else a
    new one. If several fit nothing changes, and they are listed; if one in `close` was meant, change that and
    finish the new one. Say times with their zone."""
    if turn.user is None:
        raise ToolFailed("this person is anonymous: no task can be kept for them")
    if id is None and not description.strip():
        raise TryAgain("description: say what is to be done, or give the id of a task")
    now = turn.clock()
    try:
        when: Due = None if due is None else read_due(due, turn.zone, now)
    except ValueError as error:
        raise TryAgain(f'due: {error}; "never" for none') from error
    about: dict[str, Any] = {"id": id, "due": when, "place": turn.place, "message_id": turn.message_id}
    try:
        change = await stored(partial(turn.tasks.update, turn.user, description, status, now=now, **about))
    except NotFound as error:
        raise TryAgain(str(error)) from error
    return _shown(turn, change, when, now)


def _shown(turn: TurnContext, change: Change, when: Due, now: datetime) -> dict[str, Any]:
    task = change.task
    shown: dict[str, Any] = {
        "id": task.id[:SHORT_ID],
        "action": change.action,
        "description": task.description,
        "status": task.status,
        "due": task.due.astimezone(turn.zone).isoformat(timespec="minutes") if task.due else None,
        **({"zone": str(turn.zone)} if task.due else {}),
    }
    if isinstance(when, datetime) and when <= now and task.status != "done":
        shown["note"] = "that due time has passed; if it was not meant, give another"
    if change.close:
        shown["close"] = [{"id": one.id[:SHORT_ID], "description": one.description} for one in change.close]
    return shown
