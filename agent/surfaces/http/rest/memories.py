"""Routes for the memories of a session. A session is a person or one of their conversations; its memories are
those that the person may read in private."""

import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import ApiError, not_found
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.strict import Strict
from memory.errors import NotFound
from memory.facts.ttl import read_ttl
from memory.facts.writer import MAX_CONTENT
from memory.records import DEFAULT_IMPORTANCE, Decision, Memory, MemoryType
from memory.sql.memories import CORRECTED

MAX_SESSION = 400
"""Characters of a session's id."""
_ID = re.compile(r"[0-9a-f-]{8,36}")

router = APIRouter(prefix="/api/sessions/{sessionId}/memories", tags=["memories of a session"])

EXAMPLE: dict[str, Any] = {
    "id": "0273fae5-5e0d-4a43-8a5b-0b52b3a4c1b0",
    "sessionId": "mickael",
    "memoryContent": "Mickael moved to Lyon",
    "memoryType": "fact",
    "importance": 0.7,
    "createdAt": "2026-11-21T09:30:00Z",
    "lastAccessedAt": "2026-11-21T09:30:00Z",
}

Content = Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, pattern=r"\S")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="the newest so many")]


def _understood(ttl: str) -> str:
    if not read_ttl(ttl).understood:
        message = "{ttl} is no length of time such as 1h, 7d, 2w or never"
        raise PydanticCustomError("ttl", message, {"ttl": repr(ttl)})
    return ttl


Ttl = Annotated[
    str, Field(max_length=100, description="7d, 2w …; unset is for good"), AfterValidator(_understood)
]


class NewMemory(Strict):
    """A statement to remember."""

    model_config = example({"content": "Mickael moved to Lyon", "type": "fact", "importance": 0.7})

    content: Content
    type: MemoryType = "fact"
    importance: Annotated[float, Field(ge=0, le=1)] = DEFAULT_IMPORTANCE
    subjects: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)] = Field(
        default_factory=list
    )
    ttl: Ttl | None = None


class SessionMemory(BaseModel):
    """A memory of the session's owner, in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True) | example(EXAMPLE)

    id: str
    session_id: str
    memory_content: str
    memory_type: MemoryType
    importance: float
    created_at: datetime
    last_accessed_at: datetime


async def _session_user(sessionId: str, caller: Authenticated, pet: Pet) -> str:
    """Return the session's owner; for a service that names no user, the only possible one. Raises the same
    ApiError for somebody else's session as for one that does not exist."""
    sessions = pet.services.transcripts
    if len(sessionId) <= MAX_SESSION and sessionId.isprintable():
        if caller.user is None:
            if user := await sessions.only_user(sessionId):
                return user
        elif await sessions.belongs_to(sessionId, caller.user):
            return caller.user
    raise not_found("session")


User = Annotated[str, Depends(_session_user)]


@router.get("")
async def list_memories(sessionId: str, user: User, pet: Pet, limit: Limit = 1000) -> list[SessionMemory]:
    """List what is remembered, newest first."""
    return [_session_memory(sessionId, memory) for memory in await pet.memories(user=user, limit=limit)]


@router.post("", status_code=201, responses={200: {"model": SessionMemory, "description": "Known already"}})
async def add_memory(
    sessionId: str, given: NewMemory, user: User, pet: Pet, response: Response
) -> SessionMemory:
    """Remember one statement. If it is known already, the status is 200 and the response is the memory that
    states it. If it is not worth keeping, the status is 422."""
    decision = await pet.remember(user=user, **given.model_dump())
    if decision.action in ("merge", "ignore"):
        response.status_code = 200
    return _session_memory(sessionId, await stored_memory(pet, decision, user))


@router.get("/{memoryId}")
async def get_memory(sessionId: str, memoryId: str, user: User, pet: Pet) -> SessionMemory:
    """Return one memory. The status is 404 if the session's owner has none with this id."""
    return _session_memory(sessionId, await find_memory(pet, memoryId, user))


@router.delete("/{memoryId}", status_code=204)
async def delete_memory(memoryId: str, user: User, pet: Pet) -> None:
    """Forget a memory, with what it had replaced, the messages that state it and the replies that repeat
    it."""
    await pet.delete_memory((await find_memory(pet, memoryId, user)).id, user=user)


async def stored_memory(pet: Companion, decision: Decision, user: str) -> Memory:
    """Return the memory that states it now. Raises ApiError if nothing was stored."""
    if decision.id is None:
        raise ApiError(422, "not_kept", f"it is not kept: {decision.reason}")
    return await find_memory(pet, decision.id, user)


async def find_memory(pet: Companion, id: str, user: str) -> Memory:
    """Find a memory by its id or its first eight characters: by that of an earlier wording too. Raises
    ApiError."""
    known: set[str] = set()
    while _ID.fullmatch(id) and id not in known:
        known.add(id)
        try:
            return await pet.memory(id, user=user)
        except NotFound:
            steps = [step for step in await pet.history(id, user=user) if step.old_id.startswith(id)]
            id = steps[-1].new_id or "" if steps and steps[-1].reason == CORRECTED else ""
    raise not_found("memory")


def _session_memory(session: str, memory: Memory) -> SessionMemory:
    return SessionMemory(
        id=memory.id,
        session_id=session,
        memory_content=memory.content,
        memory_type=memory.type,
        importance=memory.importance,
        created_at=memory.created_at,
        last_accessed_at=memory.last_accessed_at or memory.created_at,
    )
