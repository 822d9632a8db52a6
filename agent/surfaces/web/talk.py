"""Show the conversation, and the answer as it arrives."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import timedelta
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import Response, StreamingResponse

from agent.companion import Companion
from agent.errors import HachiError
from agent.surfaces.web.memory_pages import candidates, receipts_page, turn_of
from agent.surfaces.web.pages import Here, PageRequest, go, markdown, render
from agent.surfaces.web.sign_in import require_visit
from agent.types import Reply, TurnRequest
from memory.errors import NotFound
from memory.records import Conversation

MESSAGES_SHOWN = 40
"""Messages of a conversation on a page."""
LEARNED = 1_000
"""How many of the newest facts are read to find those learned from the messages on the page."""
CONVERSATIONS = 50
"""Maximum number of conversations on their page."""
BESIDE = 12
"""Maximum number of conversations in the list next to another one."""
PAUSE = 0.05
"""Minimum seconds between two updates of an answer, since each sends the whole text so far."""
PAUSE_RATIO = 10
"""The pause as a multiple of the time that rendering took, so that other requests are served meanwhile."""
SETTLE = 10.0
"""Maximum seconds after an answer that the page waits for what is learned from its message."""

router = APIRouter(dependencies=[Depends(require_visit)])


@router.get("/")
async def talk(here: Here) -> Response:
    """Show the private conversation."""
    try:
        one = await here.pet.conversations.get(_talk_id(here), user=here.user)
    except NotFound:
        one = None
    return await _page(here, one)


@router.post("/talk")
async def say(here: Here) -> Response:
    """Run a turn. The script gets a stream of JSON lines; without the script, the page with the answer is
    shown."""
    text, pet, user = here.field("text"), here.pet, here.user
    await pet.people.note_zone(here.field("zone"), user=user)
    if "stream" in here.form:
        return StreamingResponse(_answer(pet, user, text), media_type="application/x-ndjson")
    if text:
        await pet.respond(text, user=user)
    return await talk(here)


@router.get("/conversations")
async def conversations(here: Here) -> Response:
    """Show the conversations of all clients, with their summaries."""
    cursor = here.request.query_params.get("cursor")
    page = await here.pet.conversations.list(user=here.user, limit=CONVERSATIONS, cursor=cursor)
    return here.page("console/conversations.html", found=page, own=_talk_id(here))


@router.get("/conversations/{id:path}")
async def conversation(here: Here, id: str) -> Response:
    """Show a conversation with its summary: its newest messages, or those before a given message."""
    before = here.request.query_params.get("before")
    return await _page(here, await here.pet.conversations.get(id, user=here.user), before)


@router.post("/conversations/forget")
async def forget_conversation(here: Here) -> Response:
    return receipts_page(
        here, [await here.pet.conversations.forget_conversation(here.field("id"), user=here.user)]
    )


@router.get("/messages/{id}/why")
async def why(here: Here, id: str) -> Response:
    """Redirect to the trace of the turn that answered the message."""
    turn = await turn_of(here.pet, id, here.user)
    if turn is None:
        raise NotFound("the trace of this turn is not kept")
    return go(f"/traces/{turn.id}")


def _talk_id(here: PageRequest) -> str:
    """Return the id of the private conversation that the page continues."""
    return TurnRequest("", here.user, here.pet.clock()).conversation_id


async def _page(here: PageRequest, one: Conversation | None, before: str | None = None) -> Response:
    newest = await here.pet.conversations.list(user=here.user, limit=BESIDE)
    values = await _values(here.pet, here.user, one.id, before) if one else {"messages": [], "earlier": None}
    talks = before is None and (one is None or one.id == _talk_id(here))
    return here.page("console/talk.html", one=one, newest=newest, own=_talk_id(here), talks=talks, **values)


async def _values(pet: Companion, user: str, conversation: str, before: str | None = None) -> dict[str, Any]:
    """Return the messages of a conversation, oldest first, with what was learned from each and what each asks
    to forget. Also returns the id to pass as `before` for earlier messages."""
    newest = await pet.conversations.messages(
        user=user, limit=MESSAGES_SHOWN + 1, before=before, conversation=conversation
    )
    messages, learned, choices = newest[MESSAGES_SHOWN - 1 :: -1], defaultdict(list), dict[str, Any]()
    if messages:
        times = [message.sent_at for message in messages]
        since, until = min(times), max(times) + timedelta(minutes=1)
        for memory in await pet.memories.list(user=user, limit=LEARNED, since=since, until=until):
            learned[memory.message_id].append(memory)
    for question, reply in zip(["", *(one.id for one in messages)], messages, strict=False):
        if reply.asks is not None:
            choices[reply.id] = await candidates(pet, user, reply.asks, question)
    earlier = messages[0].id if len(newest) > MESSAGES_SHOWN else None
    return {"messages": messages, "learned": learned, "asked": choices, "earlier": earlier}


async def _answer(pet: Companion, user: str, text: str) -> AsyncIterator[str]:
    """Yield the answer as it grows. Then yield both messages as the page shows them, twice: at once, and
    later with what was learned from them."""
    text_so_far, due = "", 0.0
    try:
        async with pet.stream(text, user=user) as stream:
            async for piece in stream:
                text_so_far += piece
                if (begun := perf_counter()) >= due:
                    line = _line(html=markdown(text_so_far))
                    due = perf_counter() + max(PAUSE, PAUSE_RATIO * (perf_counter() - begun))
                    yield line
        yield await _turn(pet, user, stream.reply)
        await pet.settle(SETTLE, hurry=False)
        yield await _turn(pet, user, stream.reply)
    except HachiError as error:
        yield _line(wrong=str(error))


async def _turn(pet: Companion, user: str, reply: Reply) -> str:
    """Return the reply and the message that it answers, as the page shows them."""
    values = await _values(pet, user, str(reply.conversation))
    end = next((at for at, one in enumerate(values["messages"], 1) if one.id == reply.message_id), 0)
    values["messages"] = values["messages"][max(0, end - 2) : end]
    return _line(turn=render("console/messages.html", talks=True, **values))


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"
