"""`hachi tasks`: what a person wants to be reminded of or kept track of."""

from datetime import datetime
from typing import Annotated

import typer

from agent.surfaces.cli.options import Json, User, clean, moment
from agent.surfaces.cli.session import Session, running, say, wants
from agent.surfaces.cli.shown import print_json, print_table, short, task_json, when
from memory.errors import NotFound
from memory.records import Task, TaskStatus

group = typer.Typer(help="See and change the tasks kept track of.", rich_markup_mode=None)


@group.command("list")
@running
async def list_tasks(
    context: typer.Context,
    user: User,
    all: Annotated[bool, typer.Option("--all", help="The finished ones too.")] = False,
    json: Json = False,
) -> None:
    """The open tasks, newest first."""
    session: Session = context.obj
    async with session.companion() as pet:
        found = await pet.tasks.list(user, done=all)
    if json:
        print_json([task_json(task) for task in found])
    elif found:
        print_table(("id", "description", "status", "due", "changed"), [_row(task) for task in found])
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
        datetime | None, typer.Option(parser=moment, metavar="TIME", help="2026-01-10, or with T09:30.")
    ] = None,
    json: Json = False,
) -> None:
    """Change a task, or make a new one."""
    session: Session = context.obj
    wants(id != "new" or bool(description.strip()), "a new task needs a --description")
    wants(id == "new" or bool(description.strip() or status or due), "say what is to change")
    async with session.companion() as pet:
        old = None if id == "new" else _the_one(await pet.tasks.list(user, done=True), id)
        task = await pet.tasks.put(
            user,
            description,
            status or (old.status if old else "open"),
            now=pet.clock(),
            id=old.id if old else None,
            due=due,
        )
    if json:
        print_json(task_json(task))
    else:
        print_table(("id", "description", "status", "due", "changed"), [_row(task)])


def _the_one(tasks: list[Task], id: str) -> Task:
    found = [task for task in tasks if task.id == id or (len(id) >= 4 and task.id.startswith(id))]
    if len(found) != 1:
        raise NotFound(f"no task {id!r}; `hachi tasks list --all` shows the ids")
    return found[0]


def _row(task: Task) -> list[str]:
    return [short(task.id), task.description, task.status, when(task.due), when(task.last_updated)]
