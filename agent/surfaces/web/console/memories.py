"""What is remembered of the person."""

from contextlib import suppress

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.surfaces.web.console.why import why_remembered
from agent.surfaces.web.forms import field_of
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import person_of
from memory.errors import NotFound

SHOWN = 200
"""Facts on a page; a search finds the others."""
FOUND = 20

router = APIRouter(prefix="/memories")


@router.get("")
async def overview(request: Request) -> HTMLResponse:
    """The newest facts, or what a search finds."""
    pet, user = request.app.state.pet, person_of(request)
    text = request.query_params.get("text", "").strip()
    hits = await pet.search_memories(text, user=user, limit=FOUND) if text else []
    newest = [] if text else await pet.memories.list(user=user, limit=SHOWN)
    known = await pet.people.context(user=user)
    return page(
        request,
        "console/memories.html",
        text=text,
        memories=newest or [hit.memory for hit in hits if hit.memory],
        said=[hit for hit in hits if not hit.memory],
        profile=[(name, value) for name, value in (*known.profile, *known.preferences) if value],
        summary=known.memory_summary,
        most=SHOWN,
    )


@router.post("")
async def add(request: Request) -> Response:
    """Remember a fact that the person writes down."""
    pet: Companion = request.app.state.pet
    await pet.remember(await field_of(request, "content"), user=person_of(request))
    return RedirectResponse("/memories", 303)


@router.post("/alias")
async def alias(request: Request) -> Response:
    """Remember another name of a person."""
    pet: Companion = request.app.state.pet
    person, other = await field_of(request, "person"), await field_of(request, "alias")
    await pet.people.alias(person, other, user=person_of(request))
    return RedirectResponse("/memories", 303)


@router.get("/{id}")
async def show(request: Request, id: str) -> Response:
    """One fact. The address of a replaced one leads to what replaced it."""
    pet, user = request.app.state.pet, person_of(request)
    try:
        memory = await pet.memories.get(id, user=user)
    except NotFound:
        replacing = [step.new_id for step in await pet.memories.history(id, user=user) if step.new_id]
        for newer in reversed(replacing):
            with suppress(NotFound):
                return RedirectResponse(f"/memories/{(await pet.memories.get(newer, user=user)).id}", 303)
        raise
    why = await why_remembered(pet, memory, user)
    return page(request, "console/memory.html", memory=memory, why=why)


@router.post("/{id}")
async def correct(request: Request, id: str) -> Response:
    """Replace the fact by what the person writes."""
    pet: Companion = request.app.state.pet
    content = await field_of(request, "content")
    decision = await pet.memories.update(id, content, user=person_of(request))
    return RedirectResponse(f"/memories/{decision.id or id}", 303)


@router.post("/{id}/undo")
async def undo(request: Request, id: str) -> Response:
    """Undo the last replacement: what was replaced holds again."""
    pet: Companion = request.app.state.pet
    step = await pet.memories.undo(id, user=person_of(request))
    return RedirectResponse(f"/memories/{step.new_id}" if step.new_id else "/memories", 303)
