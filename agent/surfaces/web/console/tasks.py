"""The person's tasks."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.surfaces.web.forms import field_of
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import person_of
from memory.records import TaskStatus

router = APIRouter(prefix="/tasks")


@router.get("")
async def overview(request: Request) -> HTMLResponse:
    """Open tasks, or with `all` finished ones too."""
    pet, user = request.app.state.pet, person_of(request)
    everything = "all" in request.query_params
    found = await pet.tasks.list(user=user, done=everything)
    return page(request, "console/tasks.html", tasks=found, everything=everything, now=pet.clock())


@router.post("")
async def add(request: Request) -> Response:
    """Make a task, with a reminder where it is due at a time."""
    pet: Companion = request.app.state.pet
    user = person_of(request)
    description, due = await field_of(request, "description"), await field_of(request, "due")
    await pet.people.note_zone(await field_of(request, "zone"), user=user)
    await pet.tasks.update(description, user=user, due=due, alike=False)
    return RedirectResponse("/tasks", 303)


@router.post("/{id}")
async def change(request: Request, id: str) -> Response:
    """Finish a task, or open it again."""
    pet: Companion = request.app.state.pet
    status: TaskStatus = "done" if await field_of(request, "status") == "done" else "open"
    await pet.tasks.update(user=person_of(request), id=id, status=status)
    return RedirectResponse("/tasks", 303)
