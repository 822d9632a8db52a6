"""Answer `/api/sessions/{sessionId}/memories`: an alias of a person's memories, in shapes of its own.

A session is a person, or one of their conversations.
"""

import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import ApiError, not_found
from agent.surfaces.http.limits import StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import Content, Importance, Limit, Subjects, Ttl, Type
from memory.errors import NotFound
from memory.records import DEFAULT_IMPORTANCE, Decision, Memory, MemoryType
from memory.sql.memories.store import CORRECTED

MAX_SESSION = 400
"""Characters of a session's id."""
_ID = re.compile(r"[0-9a-f-]{8,36}")

router = api_routes("/api/sessions/{sessionId}/memories", tag="memories of a session")

EXAMPLE: dict[str, Any] = {
    "id": "0273fae5-5e0d-4a43-8a5b-0b52b3a4c1b0",
    "sessionId": "mickael",
    "memoryContent": "Mickael moved to Lyon",
    "memoryType": "fact",
    "importance": 0.7,
    "createdAt": "2026-11-21T09:30:00Z",
    "lastAccessedAt": "2026-11-21T09:30:00Z",
}


class NewMemory(StrictBody):
    """A statement to remember."""

    model_config = example({"content": "Mickael moved to Lyon", "type": "fact", "importance": 0.7})

    content: Content
    type: Type = "fact"
    importance: Importance = DEFAULT_IMPORTANCE
    subjects: Subjects = Field(default_factory=list)
    ttl: Ttl = None


class SessionMemory(BaseModel):
    """A memory, in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True) | example(EXAMPLE)

    id: str
    session_id: str
    memory_content: str
    memory_type: MemoryType
    importance: float
    created_at: datetime
    last_accessed_at: datetime


async def _user(sessionId: str, caller: Authenticated, pet: Pet) -> str:
    """Return the user of the session. If a service names no user, the only user that the session can belong
    to. Somebody else's session raises the same ApiError as a missing one."""
    caller.check_may_name()
    user = await pet.sessions.user_of(sessionId, caller.user) if len(sessionId) <= MAX_SESSION else None
    if user is None:
        raise not_found("session")
    return user


User = Annotated[str, Depends(_user)]


def _session_memory(memory: Memory, session: str) -> SessionMemory:
    return SessionMemory(
        id=memory.id,
        session_id=session,
        memory_content=memory.content,
        memory_type=memory.type,
        importance=memory.importance,
        created_at=memory.created_at,
        last_accessed_at=memory.last_accessed_at or memory.created_at,
    )


@router.get("")
async def list_session_memories(
    sessionId: str, user: User, pet: Pet, limit: Limit = 1000
) -> list[SessionMemory]:
    """List the memories that the person of the session may read in private, newest first."""
    return [_session_memory(memory, sessionId) for memory in await pet.memories.list(user=user, limit=limit)]


@router.post("", status_code=201, responses={200: {"model": SessionMemory, "description": "Known already"}})
async def add_session_memory(
    sessionId: str, user: User, body: NewMemory, pet: Pet, response: Response
) -> SessionMemory:
    """Remember one statement. If it is known already, the status is 200 and the response is the memory that
    states it. If it is not worth remembering, the status is 422."""
    decision = await pet.remember(user=user, **body.model_dump())
    response.status_code = status_of(decision)
    return _session_memory(await stored_memory(pet, decision, user), sessionId)


@router.get("/{memoryId}")
async def get_session_memory(sessionId: str, user: User, memoryId: str, pet: Pet) -> SessionMemory:
    """Return one memory. The status is 404 if the person has none with this id."""
    return _session_memory(await find_memory(pet, memoryId, user), sessionId)


@router.delete("/{memoryId}", status_code=204)
async def delete_session_memory(user: User, memoryId: str, pet: Pet) -> None:
    """Forget a memory, the memories that it replaced, the messages that state it and the replies that repeat
    it."""
    await pet.memories.forget((await find_memory(pet, memoryId, user)).id, user=user)


def status_of(decision: Decision) -> int:
    """Return 201 if a memory was created; 200 if it existed already or was ignored."""
    return 200 if decision.action in ("merge", "ignore") else 201


async def stored_memory(pet: Companion, decision: Decision, user: str) -> Memory:
    """Return the memory that now states it. Raises ApiError if nothing was stored."""
    if decision.id is None:
        raise ApiError(422, "not_kept", f"it is not kept: {decision.reason}")
    return await find_memory(pet, decision.id, user)


async def find_memory(pet: Companion, id: str, user: str) -> Memory:
    """Return a memory by its id or the first eight characters, also those of an earlier wording. Raises
    ApiError."""
    known: set[str] = set()
    while _ID.fullmatch(id) and id not in known:
        known.add(id)
        try:
            return await pet.memories.get(id, user=user)
        except NotFound:
            steps = [step for step in await pet.memories.history(id, user=user) if step.old_id.startswith(id)]
            id = steps[-1].new_id or "" if steps and steps[-1].reason == CORRECTED else ""
    raise not_found("memory")
