"""Answer `POST /v1/chat/completions`, whole and streamed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from fastapi import Request
from sse_starlette import EventSourceResponse
from starlette.responses import JSONResponse, Response

from agent.companion import Companion
from agent.models.pictures import PICTURES
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import fault_response, forbidden
from agent.surfaces.http.identity import Caller
from agent.surfaces.http.monitoring import Metrics, metrics_of
from agent.surfaces.http.openai_api.chat_request import ChatRequest
from agent.surfaces.http.openai_api.completion import (
    EXAMPLE,
    HOW_TO_BE_REMEMBERED,
    HOW_TO_GO_ON,
    ChatCompletion,
    Completion,
)
from agent.surfaces.http.openai_api.messages import parse_messages
from agent.surfaces.http.openai_api.open_webui import TurnScope, scope_of, text_in_channel
from agent.surfaces.http.openai_api.response_events import ResponseEvents
from agent.surfaces.http.pictures import fitting
from agent.surfaces.http.routes import api_routes
from agent.surfaces.links import forget_page, link_to
from agent.tracing.trace import CHORE
from agent.turn.output.reply_stream import ReplyStream
from agent.types import TextWritten, ThoughtWritten, ToolCall, TurnRequest
from agent.types.options import Ending
from memory.records import ForgetCandidate
from memory.text import without_links

FIRST_PIECE_TIMEOUT = 20.0
"""Seconds that a stream waits for the first text before it sends its status."""
LONG_TALK = 200
"""Number of messages from which a conversation is parsed in a thread, since that takes some milliseconds."""
PING = 15
"""Seconds between pings in a silent stream."""

router = api_routes(tag="chat", any_query=True)

Event = str | dict[str, str]
"""The data of a server-sent event, or its `event` and `data`."""
Writer = Completion | ResponseEvents
"""Writes an answer in the form of one of OpenAI's APIs, whole or as the events of a stream."""


@router.post(
    "/v1/chat/completions",
    response_class=JSONResponse,
    responses={
        200: {
            "model": ChatCompletion,
            "content": {
                "application/json": {"example": EXAMPLE},
                "text/event-stream": {"example": 'data: {"object": "chat.completion.chunk", …}\n\n'},
            },
        }
    },
)
async def create_chat_completion(
    asked: ChatRequest, caller: Authenticated, pet: Pet, request: Request
) -> Response:
    """Answer the last message of the user. The messages before it are the client's copy of the conversation;
    what was edited or regenerated there replaces the stored messages.

    A user's key acts for its user. With a service's key the header `x-openwebui-user-id` names the user;
    without it the turn is anonymous, and nothing is read or stored. `x-openwebui-chat-id`, or `chat_id` in
    `metadata`, names the conversation. `conversation` names one whose history Hachi stores; `messages` are
    then added to it. Besides OpenAI's fields the response has `memories`: those that were used.
    """
    id, created = f"chatcmpl-{uuid4().hex}", int(pet.clock().timestamp())
    usage = bool(asked.stream_options and asked.stream_options.include_usage)
    return await answer(asked, caller, pet, request, partial(Completion, id, created, usage))


async def answer(
    asked: ChatRequest,
    caller: Caller,
    pet: Companion,
    request: Request,
    make_writer: Callable[..., Writer],
    conversation: str | None = None,
) -> Response:
    """Run the turn and return the response. `make_writer` is called with the `prompt` and a `note` for the
    client. `conversation` is the id of a conversation to continue that the request itself does not name.
    Raises BadInput and ApiError."""
    # a long conversation is parsed in a thread, so that other requests are served meanwhile
    read = partial(parse_messages, asked.messages, caller.task)
    given = await asyncio.to_thread(read) if len(asked.messages) > LONG_TALK else read()
    user, metrics = asked.person(caller), metrics_of(request)
    if asked.reads and not caller.service:
        raise forbidden("reads: only a service's key may say what the person can read")
    if caller.service:
        metrics.note_person(pet, user)
    here = scope_of(caller.chat or asked.chat, user, caller)
    stored_here = bool(here.user and (asked.stored_conversation or not here.place.private))
    if asked.response_format:  # in a thread: a schema may take long to check
        client = await asyncio.to_thread(asked.client_turn, given, stored_here=stored_here)
    else:
        client = asked.client_turn(given, stored_here=stored_here)
    if PICTURES.get():
        client = fitting(client, as_text=(await pet.runtime()).turn.model.brought)
    conversation, kept = conversation or here.conversation, bool(here.user and here.place.private)
    if kept and caller.question:
        client = replace(client, begins=caller.begins, question=f"question:{caller.question}")
    alone = kept and not (conversation or given.history)
    note = HOW_TO_GO_ON if alone else None if user else HOW_TO_BE_REMEMBERED
    writer = make_writer(prompt=given.text, note=note)
    if given.client_task:
        text = await _answer_client_task(pet, without_links(given.client_task))
        if not asked.stream:
            return JSONResponse(writer.whole(text))
        events = (*writer.begin(), *writer.piece(text), *writer.end(text))
        return EventSourceResponse(iter(events), sep="\n", ping=PING)
    text = given.text
    if not here.place.private:
        text = text_in_channel(text, caller.author or "User", given.instructions)
    turn: dict[str, Any] = {
        "user": here.user,
        "place": here.place,
        "conversation": conversation,
        "author": caller.author,
        "instructions": given.instructions,
        "client": client,
        "reads": asked.reads or None,
        "origins": (*writer.origins, *filter(None, [client.question])) if kept else (),
        "ending": _links(pet, here, request) if request.app.state.console and not client.form else None,
    }
    if asked.stream:
        stream = pet.stream(text, **turn)
        return await _stream(writer, stream, metrics, operator=caller.admin)
    with metrics.turn_seconds.time():
        reply = await pet.respond(text, **turn)
    return JSONResponse(writer.whole(reply.message, reply))


def _links(pet: Companion, here: TurnScope, request: Request) -> Ending | None:
    """Return what appends links to an answer in a private conversation: to the person's pages, if they asked
    to forget something or what is remembered about them."""
    # not the request's `Host`, which any client can set
    user, base = here.user, pet.settings.console_url or f"http://127.0.0.1:{request.scope['server'][1]}"
    if user is None or not here.place.private:
        return None

    async def ending(found: Sequence[ForgetCandidate] | None, calls: Sequence[ToolCall]) -> str:
        told = [await forget_page(pet, user, base, found)] if found is not None else []
        if any(call.ok and call.name == "get_recent_memories" for call in calls):
            told.append(
                f"[All that is remembered of you]({await link_to(pet, user, base)}), within ten minutes."
            )
        return "\n\n".join(told)

    return ending


async def _answer_client_task(pet: Companion, task: str) -> str:
    """Answer a task of Open WebUI itself, such as writing a title, in an anonymous turn of one question.
    Raises ModelError."""
    from agent.models.ask import ask
    from agent.models.failures import model_error

    house = (await pet.runtime()).turn
    with house.parts.recorder.turn(TurnRequest(task, None, pet.clock()), house.model.name, CHORE):
        try:
            return await ask(house.model, CHORE, task)
        except Exception as error:
            fault = model_error(error, pet.settings)
            if fault is None:
                raise
            raise fault from error


async def _stream(writer: Writer, stream: ReplyStream, metrics: Metrics, *, operator: bool) -> Response:
    """Start the response with the first text, or after FIRST_PIECE_TIMEOUT. An error before that is raised
    and sets the status; a later one is sent in the stream."""
    pieces = (one async for one in stream.events() if isinstance(one, TextWritten | ThoughtWritten))
    started = time.monotonic()
    first = asyncio.ensure_future(anext(pieces, None))
    done, _ = await asyncio.wait({first}, timeout=FIRST_PIECE_TIMEOUT)
    if done:
        first.result()

    async def events() -> AsyncIterator[Event]:
        text = ""
        try:
            for event in writer.begin():
                yield event
            piece = await first
            while piece is not None:
                thought = isinstance(piece, ThoughtWritten)
                text += "" if thought else piece.text
                for event in writer.thought(piece.text) if thought else writer.piece(piece.text):
                    yield event
                piece = await anext(pieces, None)
            metrics.turn_seconds.observe(time.monotonic() - started)
            for event in writer.end(text, stream.reply):
                yield event
        except Exception as error:
            yield json.dumps(fault_response(error, operator=operator)[1])
        finally:
            first.cancel()
            await stream.aclose()

    return EventSourceResponse(events(), sep="\n", ping=PING)
