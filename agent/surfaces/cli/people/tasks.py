"""`hachi tasks`: what a person wants to be reminded of or kept track of."""

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Json, User, clean, read_by
from agent.surfaces.cli.output import print_json, print_records, print_table, say, short
from agent.surfaces.cli.session import require, with_companion
from agent.surfaces.records_json import task_json
from memory.audience import PRIVATE
from memory.errors import NotFound
from memory.people.due_dates import read_due
from memory.records import Task, TaskStatus

if TYPE_CHECKING:
    from agent.companion import Companion

group = typer.Typer(help="See and change the tasks kept track of.", rich_markup_mode=None)

COLUMNS = ("id", "description", "status", "due", "changed")


def _due(text: str) -> str:
    """Checked, and kept as it was typed: its time zone is that of the task's user. Raises ValueError."""
    if text.lower() in ("never", "none"):
        return "never"
    try:
        read_due(text, None, datetime.now(UTC))
    except ValueError as error:
        raise ValueError(f"{error}; never takes it away") from None
    return text


@group.command("list")
@with_companion
async def list_tasks(
    pet: "Companion",
    user: User,
    all: Annotated[bool, typer.Option("--all", help="The finished ones too.")] = False,
    json: Json = False,
) -> None:
    """The open tasks, newest first, with times by the person's clock."""
    found = await pet.services.tasks.list(user, PRIVATE, done=all)
    zone = await _zone_of(pet, user)
    empty = f"no {'' if all else 'open '}tasks for {user!r}"
    print_records(found, json, COLUMNS, lambda task: _row(task, zone), empty=empty, to_json=task_json)


@group.command()
@with_companion
async def update(
    pet: "Companion",
    id: Annotated[
        str, typer.Argument(parser=clean, metavar="ID|new", help="Its id or the start of it, or: new.")
    ],
    user: User,
    description: Annotated[str, typer.Option(parser=clean, metavar="TEXT")] = "",
    status: Annotated[TaskStatus | None, typer.Option()] = None,
    due: Annotated[
        str | None,
        typer.Option(
            parser=read_by(_due),
            metavar="TIME|never",
            help="2026-01-10 (at nine), 2026-01-10T09:30, or English (friday 17:30, in 2 hours), by the "
            "person's clock; never takes it away.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Change a task, or make a new one."""
    from memory.people.tasks import Unclear

    new, described = id == "new", bool(description.strip())
    require(described or not new, "a new task needs a --description")
    require(new or described or bool(status or due), "say what is to change")
    zone, now = await _zone_of(pet, user), pet.clock()
    due_at = None if due is None else read_due(due, zone, now)
    try:
        change = await pet.services.tasks.update(
            user, description, status, id=None if new else id, due=due_at, now=now, alike=False
        )
    except NotFound as error:
        if new or isinstance(error, Unclear):
            raise
        raise NotFound(f"no task {id!r}; `hachi tasks list --all` shows the ids") from error
    if new and change.action != "made":
        say(f"task {short(change.task.id)} has the same words, so there is no second one")
    if json:
        print_json(task_json(change.task))
    else:
        print_table(COLUMNS, [_row(change.task, zone)])


async def _zone_of(pet: "Companion", user: str) -> tzinfo | None:
    """The person's time zone; None is this machine's, for those who told none."""
    known = await pet.context(user=user)
    return known.zone if known.profile.timezone else None


def _row(task: Task, zone: tzinfo | None) -> list[str]:
    times = (task.due, task.last_updated)
    due, changed = (f"{time.astimezone(zone):%Y-%m-%d %H:%M}" if time else "" for time in times)
    return [short(task.id), task.description, task.status, due, changed]
