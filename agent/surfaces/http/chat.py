"""OpenAI's chat API: `POST /v1/chat/completions`, whole and streamed, and the list of models."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from sse_starlette import EventSourceResponse
from starlette.responses import JSONResponse, Response

from agent.companion import Companion
from agent.services.transcripts import conversation_id
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.chat_request import ChatRequest, parse_messages
from agent.surfaces.http.errors import fault_response
from agent.surfaces.http.metrics import Measured, Metrics
from agent.surfaces.http.openai_types import EXAMPLE, MODEL, Completion
from agent.turn.streaming import ReplyStream

FIRST_PIECE_TIMEOUT = 20.0
"""Seconds that a stream waits for its first words before it sends its status."""
PING = 15
"""Seconds between pings in a silent stream."""

router = APIRouter(tags=["chat"])

MODELS: dict[str, Any] = {
    "object": "list",
    "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "hachi"}],
}


@router.get("/v1/models", responses={200: {"content": {"application/json": {"example": MODELS}}}})
async def models(_: Authenticated) -> dict[str, Any]:
    """List the models. There is one."""
    return MODELS


@router.get("/v1/models/{model}")
async def model(model: str, _: Authenticated) -> dict[str, Any]:
    """Describe a model. Every name is accepted."""
    return {**MODELS["data"][0], "id": model}


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
async def complete(asked: ChatRequest, caller: Authenticated, pet: Pet, metrics: Measured) -> Response:
    """Answer the last message of the user. The messages before it are the conversation, as the client has it:
    what was edited or regenerated there is replaced here.

    A user's key speaks for its user. With a service's key the header `x-openwebui-user-id` names the user;
    without it the turn is anonymous, and nothing is read or stored. `x-openwebui-chat-id`, or `chat_id` in
    `metadata`, names the conversation; `conversation` names one that is kept here, to which `messages` are
    added. Beside OpenAI's fields the response has `memories`: those that were `used`, and those that
    were `learned`.
    """
    given = parse_messages(asked.messages)
    user = caller.acting_for(asked.person)
    kept_here = user is not None and asked.conversation is not None
    client = asked.client_turn(given, kept_here=kept_here)
    completion = Completion(
        id=f"chatcmpl-{uuid4().hex}",
        created=int(pet.clock().timestamp()),
        prompt=given.text,
        include_usage=bool(asked.stream_options and asked.stream_options.include_usage),
        anonymous=user is None,
    )
    if given.is_client_task:
        text = await _answer_client_task(pet, given.text)
        if not asked.stream:
            return JSONResponse(completion.whole(text))
        chunks = (completion.begin(), completion.piece(text), *completion.end(text))
        return EventSourceResponse(iter(chunks), sep="\n", ping=PING)
    turn: dict[str, Any] = {
        "user": user,
        "conversation": conversation_id(user, caller.chat or asked.chat),
        "author": caller.author,
        "instructions": given.instructions,
        "client": client,
    }
    if asked.stream:
        stream = pet.stream(given.text, **turn)
        return await _stream(completion, stream, metrics, operator=caller.admin)
    with metrics.turn_seconds.time():
        reply = await pet.respond(given.text, **turn)
    return JSONResponse(completion.whole(reply.message, reply))


async def _answer_client_task(pet: Companion, task: str) -> str:
    """Ask the model for a title, tags or follow-up questions, without memory. Raises ModelError."""
    from agent.models.ask import ask
    from agent.models.failures import model_error

    house = (await pet.runtime()).turn
    try:
        return await ask(house.model, "chore", task)
    except Exception as error:
        fault = model_error(error, pet.settings)
        if fault is None:
            raise
        raise fault from error


async def _stream(
    completion: Completion,
    stream: ReplyStream,
    metrics: Metrics,
    *,
    operator: bool,
) -> Response:
    """Start the response with the first words, or after FIRST_PIECE_TIMEOUT. An earlier error is raised and
    sets the status; a later one is sent in the stream."""
    pieces, started = aiter(stream), time.monotonic()
    first = asyncio.ensure_future(anext(pieces, None))
    done, _ = await asyncio.wait({first}, timeout=FIRST_PIECE_TIMEOUT)
    if done:
        first.result()

    async def chunks() -> AsyncIterator[str]:
        text = ""
        try:
            yield completion.begin()
            piece = await first
            while piece is not None:
                text += piece
                yield completion.piece(piece)
                piece = await anext(pieces, None)
            metrics.turn_seconds.observe(time.monotonic() - started)
            for chunk in completion.end(text, stream.reply):
                yield chunk
        except Exception as error:
            yield json.dumps(fault_response(error, operator=operator)[1])
        finally:
            first.cancel()
            await stream.aclose()

    return EventSourceResponse(chunks(), sep="\n", ping=PING)
