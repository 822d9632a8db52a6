"""What is remembered of the person: each fact with the reason why it is there."""

from dataclasses import dataclass

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.surfaces.web.forms import field_of
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import person_of, require_own_page
from agent.tracing.filters import TraceFilter
from agent.tracing.trace import Summary
from memory.errors import NotFound
from memory.records import Memory, MemoryUpdate, Message

SHOWN = 200
"""Facts on a page; a search finds the others."""
FOUND = 20

router = APIRouter(prefix="/memories")


@dataclass(frozen=True, slots=True)
class Why:
    """Why a fact is remembered."""

    message: Message | None
    """What the person said."""
    turn: Summary | None
    """The trace of the turn in which they said it."""
    reason: str | None
    """What was decided when it was stored."""
    steps: list[MemoryUpdate]
    """What it replaced, and what replaced that."""


@router.get("")
async def overview(request: Request) -> HTMLResponse:
    """The newest facts, or what a search finds."""
    pet, user = request.app.state.pet, person_of(request)
    text = request.query_params.get("text", "").strip()
    hits = await pet.search_memories(text, user=user, limit=FOUND) if text else []
    newest = [] if text else await pet.memories(user=user, limit=SHOWN)
    known = await pet.context(user=user)
    return page(
        request,
        "console/memories.html",
        text=text,
        memories=newest or [hit.memory for hit in hits if hit.memory],
        said=[hit for hit in hits if not hit.memory],
        profile=[*known.profile, *known.preferences],
        summary=known.memory_summary,
        most=SHOWN,
    )


@router.post("", dependencies=[Depends(require_own_page)])
async def add(request: Request) -> Response:
    """Remember a fact that the person writes down."""
    pet: Companion = request.app.state.pet
    await pet.remember(await field_of(request, "content"), user=person_of(request))
    return RedirectResponse("/memories", 303)


@router.get("/{id}")
async def show(request: Request, id: str) -> HTMLResponse:
    """One fact."""
    pet: Companion = request.app.state.pet
    memory = await pet.memory(id, user=person_of(request))
    why = await _why(pet, memory, person_of(request))
    return page(request, "console/memory.html", memory=memory, why=why)


@router.post("/{id}", dependencies=[Depends(require_own_page)])
async def correct(request: Request, id: str) -> Response:
    """Replace the fact by what the person writes."""
    pet: Companion = request.app.state.pet
    content = await field_of(request, "content")
    decision = await pet.update_memory(id, content, user=person_of(request))
    return RedirectResponse(f"/memories/{decision.id or id}", 303)


@router.post("/{id}/forget", dependencies=[Depends(require_own_page)])
async def forget(request: Request, id: str) -> HTMLResponse:
    pet: Companion = request.app.state.pet
    receipt = await pet.delete_memory(id, user=person_of(request))
    return page(request, "console/forgotten.html", receipts=[receipt])


@router.post("/{id}/undo", dependencies=[Depends(require_own_page)])
async def undo(request: Request, id: str) -> Response:
    """Undo the last replacement: what was replaced holds again."""
    pet: Companion = request.app.state.pet
    step = await pet.undo(id, user=person_of(request))
    return RedirectResponse(f"/memories/{step.new_id}" if step.new_id else "/memories", 303)


async def _why(pet: Companion, memory: Memory, user: str) -> Why:
    steps = await pet.history(memory.id, user=user)
    if memory.message_id is None:
        return Why(None, None, None, steps)
    try:
        message = await pet.services.transcripts.own(memory.message_id, user=user)
    except NotFound:
        return Why(None, None, None, steps)
    await pet.components.recorder.flush()
    wanted = TraceFilter(user=user, message_id=message.id)
    turns = await pet.traces.list(wanted, pet.clock(), 1)
    reason = await _decision(pet, turns[0], memory.id) if turns else None
    return Why(message, turns[0] if turns else None, reason, steps)


async def _decision(pet: Companion, turn: Summary, id: str) -> str | None:
    """The reason that the turn, or the work after it, recorded for storing this memory."""
    try:
        found = await pet.traces.get_with_jobs(turn.id, pet.clock())
    except NotFound:
        return None
    for trace in (found.trace, *found.jobs):
        for span in trace.spans("decision"):
            for decision in span.data.get("decisions", ()):
                if decision.get("id") == id:
                    return f"{decision['action']}: {decision['reason']}"
    return None
