"""Forgetting: a fact, a message, or what a person asked in words to forget; and bringing it back."""

from collections.abc import Sequence
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.surfaces.web.forms import field_of, form_of
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import person_of
from memory.records import ForgetCandidate, Forgotten

router = APIRouter()


@router.post("/memories/{id}/forget")
async def forget_fact(request: Request, id: str) -> HTMLResponse:
    pet: Companion = request.app.state.pet
    return _told(request, [await pet.memories.forget(id, user=person_of(request))])


@router.post("/messages/{id}/forget")
async def forget_message(request: Request, id: str) -> HTMLResponse:
    """Forget one of the person's messages."""
    pet: Companion = request.app.state.pet
    return _told(request, [await pet.conversations.forget(id, user=person_of(request))])


@router.post("/forget")
async def forget_chosen(request: Request) -> Response:
    """Forget what the person confirmed of what they asked in words to forget."""
    pet, form = request.app.state.pet, await form_of(request)
    kinds: tuple[Literal["memory", "message"], ...] = ("memory", "message")
    chosen = [
        ForgetCandidate(id, kind, "", pet.clock(), form.get("asked", [""])[0])
        for kind in kinds
        for id in form.get(kind, [])
    ]
    receipts = await pet.memories.forget_confirmed(chosen, user=person_of(request))
    return _told(request, receipts) if receipts else RedirectResponse("/", 303)


@router.post("/restore")
async def restore(request: Request) -> Response:
    """Bring back what was forgotten."""
    pet: Companion = request.app.state.pet
    back = await pet.memories.undo_forget(await field_of(request, "id"), user=person_of(request))
    return RedirectResponse(f"/memories/{back.id}" if back.id else "/", 303)


def _told(request: Request, receipts: Sequence[Forgotten]) -> HTMLResponse:
    return page(request, "console/forgotten.html", receipts=receipts)
