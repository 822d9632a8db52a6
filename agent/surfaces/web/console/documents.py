"""The documents that the person may read."""

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.surfaces.web.forms import field_of
from agent.surfaces.web.templates import page
from agent.surfaces.web.visits import person_of
from memory.audience import user_key

router = APIRouter(prefix="/documents")


@router.get("")
async def overview(request: Request) -> HTMLResponse:
    """The documents, or the passages that a search finds."""
    pet, user = request.app.state.pet, person_of(request)
    text = request.query_params.get("text", "").strip()
    return page(
        request,
        "console/documents.html",
        text=text,
        passages=await pet.documents.search(text, user=user) if text else [],
        documents=await pet.documents.list(user=user),
        own=user_key(user),
    )


@router.post("")
async def add(request: Request) -> Response:
    """Keep a text as a document of the person's own."""
    pet: Companion = request.app.state.pet
    name, content = await field_of(request, "name"), await field_of(request, "content")
    await pet.documents.add(name if "." in name else f"{name}.md", content, user=person_of(request))
    return RedirectResponse("/documents", 303)


@router.post("/{id}/remove")
async def remove(request: Request, id: str) -> Response:
    pet: Companion = request.app.state.pet
    await pet.documents.remove(id, user=person_of(request))
    return RedirectResponse("/documents", 303)
