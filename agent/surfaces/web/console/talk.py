"""Talking: the page with the conversation, and the answer as it is written."""

import json
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from agent.companion import Companion
from agent.errors import FAULTS
from agent.surfaces.web.forms import field_of, form_of
from agent.surfaces.web.templates import markdown, page, render
from agent.surfaces.web.visits import person_of, require_own_page
from agent.types import Reply, TurnRequest
from memory.records import ForgetCandidate

SHOWN = 40
"""Messages of the conversation on the page."""
PAUSE = 0.05
"""Seconds between two pieces of an answer at least: each is the whole text so far."""

router = APIRouter()


@router.get("/")
async def talk(request: Request) -> HTMLResponse:
    """The private conversation."""
    return await _page(request)


@router.post("/talk", dependencies=[Depends(require_own_page)])
async def say(request: Request) -> Response:
    """Take a turn: as a stream of JSON lines for the script, else as the page with the answer."""
    form = await form_of(request)
    text, pet, user = form.get("text", [""])[0].strip(), request.app.state.pet, person_of(request)
    if "stream" in form:
        return StreamingResponse(_answer(pet, user, text), media_type="application/x-ndjson")
    return await _page(request, await pet.respond(text, user=user) if text else None)


@router.post("/messages/{id}/forget", dependencies=[Depends(require_own_page)])
async def forget_message(request: Request, id: str) -> HTMLResponse:
    """Forget one of the person's messages."""
    pet: Companion = request.app.state.pet
    receipt = await pet.delete_message(id, user=person_of(request))
    return page(request, "console/forgotten.html", receipts=[receipt])


@router.post("/forget", dependencies=[Depends(require_own_page)])
async def forget_chosen(request: Request) -> Response:
    """Forget what the person confirmed of what they asked in words to forget."""
    pet, form = request.app.state.pet, await form_of(request)
    kinds: tuple[Literal["memory", "message"], ...] = ("memory", "message")
    chosen = [
        ForgetCandidate(id, kind, "", pet.clock(), form.get("asked", [""])[0])
        for kind in kinds
        for id in form.get(kind, [])
    ]
    receipts = await pet.forget(chosen, user=person_of(request))
    if not receipts:
        return RedirectResponse("/", 303)
    return page(request, "console/forgotten.html", receipts=receipts)


@router.post("/restore", dependencies=[Depends(require_own_page)])
async def restore(request: Request) -> Response:
    """Bring back what was forgotten."""
    pet: Companion = request.app.state.pet
    await pet.undo_forget(await field_of(request, "id"), user=person_of(request))
    return RedirectResponse("/memories", 303)


async def _page(request: Request, reply: Reply | None = None) -> HTMLResponse:
    pet, user = request.app.state.pet, person_of(request)
    conversation = TurnRequest("", user, pet.clock()).conversation_id
    found = await pet.messages(user=user, limit=SHOWN)
    shown = [message for message in reversed(found) if message.conversation_id == conversation]
    return page(request, "console/talk.html", messages=shown, reply=reply)


async def _answer(pet: Companion, user: str, text: str) -> AsyncIterator[str]:
    said, told = "", 0.0
    try:
        async with pet.stream(text, user=user) as stream:
            async for piece in stream:
                said += piece
                if perf_counter() - told >= PAUSE:
                    told = perf_counter()
                    yield _line(html=markdown(said))
        after = render("console/after.html", reply=stream.reply)
        yield _line(html=markdown(stream.reply.message), after=after)
    except FAULTS as error:
        yield _line(wrong=str(error))


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"
