"""Talking, as clients of OpenAI's API do it: `POST /v1/chat/completions`, whole and streamed, and the list of
models."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse
from starlette.responses import JSONResponse, Response

from agent.companion import Companion
from agent.errors import FAULTS, BadInput
from agent.surfaces.http.chores import do_chore
from agent.surfaces.http.completions import EXAMPLE, MODEL, Completion
from agent.surfaces.http.figures import Figures
from agent.surfaces.http.identity import Asking, Pet
from agent.surfaces.http.refusals import broken, told
from agent.surfaces.http.said import ChatRequest, Said, read_messages
from agent.turn.streaming import ReplyStream
from memory.audience import Audience
from memory.records import Memory
from memory.search.core_facts import core_facts, get_relevant_memories

PATIENCE = 20.0
"""Seconds that the head of a stream waits for its first words: until then a fault has a status of its own."""
PING = 15
"""Seconds between two signs of life in a stream that says nothing."""

router = APIRouter(tags=["chat"])

MODELS: dict[str, Any] = {
    "object": "list",
    "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "hachi"}],
}


@router.get("/v1/models", responses={200: {"content": {"application/json": {"example": MODELS}}}})
async def models(_: Asking) -> dict[str, Any]:
    """The models there are: one."""
    return MODELS


@router.get("/v1/models/{model}")
async def model(model: str, _: Asking) -> dict[str, Any]:
    """Any name is answered, as any is accepted."""
    found: dict[str, Any] = MODELS["data"][0]
    return found | {"id": model}


@router.post(
    "/v1/chat/completions",
    response_class=JSONResponse,
    responses={
        200: {
            "content": {
                "application/json": {"example": EXAMPLE},
                "text/event-stream": {"example": 'data: {"object": "chat.completion.chunk", …}\n\n'},
            }
        }
    },
)
async def complete(request: Request, asked: ChatRequest, caller: Asking, pet: Pet) -> Response:
    """One turn. What is said is the last message of the user; what was said before is in the transcript.

    A user's key speaks for its user. With a service's key the header `x-openwebui-user-id` says who speaks;
    without it, it is nobody: nothing is read for them, and nothing is kept. `x-openwebui-chat-id` tells
    conversations of one user apart. Beside OpenAI's fields the answer has `memories`, those that were `used`
    and those that were `learned`.
    """
    if asked.n not in (None, 1):
        raise BadInput("n: one answer is made, so n must be 1")
    said = read_messages(asked.messages)
    if caller.key is not None and caller.key.kind == "user":
        caller.acting_for(asked.user)
    completion = Completion(f"chatcmpl-{uuid4().hex}", int(pet.clock().timestamp()))
    if said.chore:
        text = await do_chore(pet, said.text)
        return _done(asked, completion, said, text)
    figures: Figures = request.app.state.figures
    shown = await facts_shown(pet, said.text, caller.user)
    speaker: dict[str, Any] = {
        "user": caller.user,
        "conversation": conversation_of(caller.user, caller.chat),
        "author": caller.author,
        "instructions": said.instructions,
        "earlier": said.earlier,
    }
    if asked.stream:
        stream = pet.stream(said.text, **speaker)
        return await _streamed(asked, completion, said, stream, shown, figures, in_full=caller.admin)
    with figures.turn_seconds.time():
        reply = await pet.respond(said.text, **speaker)
    figures.turn(reply)
    return JSONResponse(completion.whole(reply.message, said.text, reply, shown))


async def facts_shown(pet: Companion, text: str, user: str | None) -> list[Memory]:
    """The facts that the model gets to see with this question, before it looks anything up."""
    if user is None:
        return []
    facts = await core_facts(pet.components.store, user, Audience.of(user), pet.clock())
    return get_relevant_memories(facts, text)


def conversation_of(user: str | None, chat: str | None) -> str | None:
    """The conversation that a client calls `chat`. What two users call the same are two."""
    return f"chat:{quote(chat, safe='')}:{user}" if user and chat else None


def _done(asked: ChatRequest, completion: Completion, said: Said, text: str) -> Response:
    """An answer that is there already, in the form that is wanted."""
    if not asked.stream:
        return JSONResponse(completion.whole(text, said.text))

    used = [completion.used(said.text, text)] if _wants_usage(asked) else []

    async def chunks() -> AsyncIterator[dict[str, str]]:
        for data in (completion.begin(), completion.piece(text), completion.end(), *used, "[DONE]"):
            yield {"data": data}

    return EventSourceResponse(chunks(), sep="\n", ping=PING)


def _wants_usage(asked: ChatRequest) -> bool:
    return bool(asked.stream_options and asked.stream_options.include_usage)


async def _streamed(
    asked: ChatRequest,
    completion: Completion,
    said: Said,
    stream: ReplyStream,
    shown: Sequence[Memory],
    figures: Figures,
    *,
    in_full: bool,
) -> Response:
    """The answer begins with its first words, or when they are long in coming. What goes wrong before is
    told by the status, later in the stream."""
    pieces, begun = aiter(stream), time.monotonic()
    first = asyncio.ensure_future(anext(pieces, None))
    done, _ = await asyncio.wait({first}, timeout=PATIENCE)
    if done:
        first.result()

    async def chunks() -> AsyncIterator[dict[str, str]]:
        text = ""
        try:
            yield {"data": completion.begin()}
            piece = await first
            while piece is not None:
                text += piece
                yield {"data": completion.piece(piece)}
                piece = await anext(pieces, None)
            figures.turn(stream.reply)
            figures.turn_seconds.observe(time.monotonic() - begun)
            yield {"data": completion.end(stream.reply, shown)}
            if _wants_usage(asked):
                yield {"data": completion.used(said.text, text, stream.reply)}
            yield {"data": "[DONE]"}
        except FAULTS as error:
            yield {"data": json.dumps(told(error, in_full=in_full)[1])}
        except Exception as error:
            yield {"data": json.dumps(broken(error)[1])}
        finally:
            first.cancel()
            await stream.aclose()

    return EventSourceResponse(chunks(), sep="\n", ping=PING)
