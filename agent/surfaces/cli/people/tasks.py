"""`hachi tasks`: what a person wants to be reminded of or kept track of."""

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Annotated

import typer

from agent.surfaces.cli.options import Json, User, clean
from agent.surfaces.cli.output import print_json, print_table, short, task_json
from agent.surfaces.cli.session import Session, running, say, wants
from memory.errors import NotFound
from memory.people.due_dates import read_due
from memory.records import Task, TaskStatus

if TYPE_CHECKING:
    from agent.companion import Companion
    from memory.people.tasks import Change, Due, Tasks

group = typer.Typer(help="See and change the tasks kept track of.", rich_markup_mode=None)

COLUMNS = ("id", "description", "status", "due", "changed")
NO_DUE = ("never", "none")


def due_time(text: str) -> str:
    """As it was typed: what it means depends on whose task it is."""
    text = clean(text).strip()
    if text.lower() in NO_DUE:
        return "never"
    try:
        read_due(text, None, datetime.now(UTC))
    except ValueError as error:
        raise typer.BadParameter(f"{error}; never takes it away") from None
    return text


@group.command("list")
@running
async def list_tasks(
    context: typer.Context,
    user: User,
    all: Annotated[bool, typer.Option("--all", help="The finished ones too.")] = False,
    json: Json = False,
) -> None:
    """The open tasks, newest first, with times by the person's clock."""
    session: Session = context.obj
    async with session.companion() as pet:
        found = await pet.services.tasks.list(user, done=all)
        zone = await zone_of(pet, user)
    if json:
        print_json([task_json(task) for task in found])
    elif found:
        print_table(COLUMNS, [_row(task, zone) for task in found])
    else:
        say(f"no {'' if all else 'open '}tasks for {user!r}")


@group.command()
@running
async def update(
    context: typer.Context,
    id: Annotated[
        str, typer.Argument(parser=clean, metavar="ID|new", help="Its id or the start of it, or: new.")
    ],
    user: User,
    description: Annotated[str, typer.Option(parser=clean, metavar="TEXT")] = "",
    status: Annotated[TaskStatus | None, typer.Option()] = None,
    due: Annotated[
        str | None,
        typer.Option(
            parser=due_time,
            metavar="TIME|never",
            help="2026-01-10 (at nine), 2026-01-10T09:30, or English (friday 17:30, in 2 hours), by the "
            "person's clock; never takes it away.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Change a task, or make a new one."""
    session: Session = context.obj
    wants(id != "new" or bool(description.strip()), "a new task needs a --description")
    wants(id == "new" or bool(description.strip() or status or due), "say what is to change")
    async with session.companion() as pet:
        zone, now = await zone_of(pet, user), pet.clock()
        when = None if due is None else read_due(due, zone, now)
        change = await _update(pet.services.tasks, user, id, description, status, when, now)
    if id == "new" and change.action != "made":
        say(f"task {short(change.task.id)} has the same words, so there is no second one")
    if json:
        print_json(task_json(change.task))
    else:
        print_table(COLUMNS, [_row(change.task, zone)])


async def _update(
    tasks: "Tasks",
    user: str,
    id: str,
    description: str,
    status: TaskStatus | None,
    due: "Due",
    now: datetime,
) -> "Change":
    """Who types "new" means another one, unless in the very same words."""
    from memory.people.tasks import Unclear

    known = None if id == "new" else id
    try:
        return await tasks.update(user, description, status, id=known, due=due, now=now, alike=False)
    except Unclear:
        raise
    except NotFound as error:
        if known is None:
            raise
        raise NotFound(f"no task {id!r}; `hachi tasks list --all` shows the ids") from error


async def zone_of(pet: "Companion", user: str) -> tzinfo | None:
    """The person's time zone; None, the clock of this machine, where they told none."""
    known = await pet.context(user=user)
    return known.zone if known.profile.timezone else None


def _row(task: Task, zone: tzinfo | None) -> list[str]:
    times = (task.due, task.last_updated)
    due, changed = (f"{time.astimezone(zone):%Y-%m-%d %H:%M}" if time else "" for time in times)
    return [short(task.id), task.description, task.status, due, changed]
