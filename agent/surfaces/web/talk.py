"""Talking: the page with the conversation, and the answer as it is written."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response, StreamingResponse

from agent.companion import Companion
from agent.errors import HachiError
from agent.surfaces.web.pages import Asked, Here, go, markdown, render
from agent.surfaces.web.remembered import turn_of
from agent.surfaces.web.sign_in import require_visit
from agent.types import Reply, TurnRequest
from memory.errors import NotFound

MESSAGES_SHOWN = 40
"""Messages of the conversation on the page."""
LEARNED = 200
"""The newest facts, among which those of the shown messages are looked for."""
PAUSE = 0.05
"""Seconds between two pieces of an answer at least: each is the whole text so far."""
PAUSE_RATIO = 10
"""The pause as a multiple of the time that it took to render the piece: others are served meanwhile."""
SETTLE = 10.0
"""Seconds for which the page waits for what is learned from a message after its answer."""

router = APIRouter(dependencies=[Depends(require_visit)])


@router.get("/")
async def talk(here: Here) -> Response:
    """The private conversation."""
    return await _page(here)


@router.post("/talk")
async def say(here: Here) -> Response:
    """Take a turn: as a stream of JSON lines for the script, else as the page with the answer."""
    text, pet, user = here.field("text"), here.pet, here.user
    await pet.people.note_zone(here.field("zone"), user=user)
    if "stream" in here.form:
        return StreamingResponse(_answer(pet, user, text), media_type="application/x-ndjson")
    return await _page(here, await pet.respond(text, user=user) if text else None)


@router.get("/messages/{id}/why")
async def why(here: Here, id: str) -> Response:
    """Lead to the trace of the turn that answered the message."""
    turn = await turn_of(here.pet, id, here.user)
    if turn is None:
        raise NotFound("the trace of this turn is not kept")
    return go(f"/traces/{turn.id}")


async def _page(here: Asked, reply: Reply | None = None) -> Response:
    return here.page("console/talk.html", reply=reply, **await _said(here.pet, here.user))


async def _said(pet: Companion, user: str) -> dict[str, Any]:
    """The newest messages of the private conversation, oldest first, and what was learned from each."""
    conversation = TurnRequest("", user, pet.clock()).conversation_id
    found = await pet.conversations.messages(user=user, limit=MESSAGES_SHOWN)
    learned = defaultdict(list)
    for memory in await pet.memories.list(user=user, limit=LEARNED):
        learned[memory.message_id].append(memory)
    shown = [message for message in reversed(found) if message.conversation_id == conversation]
    return {"messages": shown, "learned": learned}


async def _answer(pet: Companion, user: str, text: str) -> AsyncIterator[str]:
    """The answer while it grows; then both messages as the page shows them, twice: at once, and with what
    was learned from them."""
    said, due = "", 0.0
    try:
        async with pet.stream(text, user=user) as stream:
            async for piece in stream:
                said += piece
                if (begun := perf_counter()) >= due:
                    line = _line(html=markdown(said))
                    due = perf_counter() + max(PAUSE, PAUSE_RATIO * (perf_counter() - begun))
                    yield line
        yield await _turn(pet, user, stream.reply)
        await pet.settle(SETTLE, hurry=False)
        yield await _turn(pet, user, stream.reply)
    except HachiError as error:
        yield _line(wrong=str(error))


async def _turn(pet: Companion, user: str, reply: Reply) -> str:
    """The reply and the message before it, as the page shows them."""
    said = await _said(pet, user)
    end = next((at for at, one in enumerate(said["messages"], 1) if one.id == reply.message_id), 0)
    said["messages"] = said["messages"][max(0, end - 2) : end]
    return _line(turn=render("console/messages.html", reply=reply, **said))


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"
