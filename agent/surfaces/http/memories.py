"""What is remembered in a session, as a service keeps it: see it, add to it, take away from it."""

import re
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.identity import Asking, Pet
from agent.surfaces.http.refusals import Refusal
from agent.surfaces.http.sessions import user_of
from memory.errors import NotFound
from memory.facts.writer import MAX_CONTENT
from memory.records import DEFAULT_IMPORTANCE, Decision, Memory, MemoryType

router = APIRouter(prefix="/api/sessions/{sessionId}/memories", tags=["memories of a session"])

_ID = re.compile(r"[0-9a-f-]{8,36}")

EXAMPLE: dict[str, Any] = {
    "id": "0273fae5-5e0d-4a43-8a5b-0b52b3a4c1b0",
    "sessionId": "mickael",
    "memoryContent": "Mickael moved to Lyon",
    "memoryType": "fact",
    "importance": 0.7,
    "createdAt": "2026-11-21T09:30:00Z",
    "lastAccessedAt": None,
}


class NewMemory(BaseModel):
    """A statement to remember."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"content": "Mickael moved to Lyon", "type": "fact", "importance": 0.7}]
        }
    )

    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, pattern=r"\S")]
    type: MemoryType = "fact"
    importance: Annotated[float, Field(ge=0, le=1)] = DEFAULT_IMPORTANCE
    subjects: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)] = []
    ttl: Annotated[
        str | None, Field(max_length=100, description="7d, 2w …; for good where there is none")
    ] = None


class SessionMemory(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, json_schema_extra={"examples": [EXAMPLE]}
    )

    id: str
    session_id: str
    memory_content: str
    memory_type: MemoryType
    importance: float
    created_at: datetime
    last_accessed_at: datetime | None


Limit = Annotated[int, Query(ge=1, le=10_000, description="the newest so many")]


@router.get("")
async def list_memories(sessionId: str, caller: Asking, pet: Pet, limit: Limit = 1000) -> list[SessionMemory]:
    """What is remembered, newest first."""
    user = await user_of(pet, sessionId, caller)
    return [_shown(sessionId, memory) for memory in await pet.memories(user=user, limit=limit)]


@router.post("", status_code=201, responses={200: {"model": SessionMemory, "description": "Known already"}})
async def add_memory(
    sessionId: str, given: NewMemory, caller: Asking, pet: Pet, response: Response
) -> SessionMemory:
    """Remember one statement. What is decided about it is decided as always: where it was known already, the
    answer is the memory that says it, with 200; where it is not worth keeping, 422."""
    user = await user_of(pet, sessionId, caller)
    decision = await pet.remember(given.content, user=user, **given.model_dump(exclude={"content"}))
    if decision.action in ("merge", "ignore"):
        response.status_code = 200
    return _shown(sessionId, await kept(pet, decision, user))


@router.get("/{memoryId}")
async def get_memory(sessionId: str, memoryId: str, caller: Asking, pet: Pet) -> SessionMemory:
    user = await user_of(pet, sessionId, caller)
    return _shown(sessionId, await the_memory(pet, memoryId, user))


@router.delete("/{memoryId}", status_code=204)
async def delete_memory(sessionId: str, memoryId: str, caller: Asking, pet: Pet) -> None:
    """Take it away for good, with what it had replaced."""
    user = await user_of(pet, sessionId, caller)
    memory = await the_memory(pet, memoryId, user)
    await pet.delete_memory(memory.id, user=user)


async def kept(pet: Companion, decision: Decision, user: str) -> Memory:
    """The memory that says it now. Raises Refusal where it was not kept."""
    if decision.id is None:
        raise Refusal(422, "not_kept", f"it is not kept: {decision.reason}")
    return await the_memory(pet, decision.id, user)


async def the_memory(pet: Companion, id: str, user: str) -> Memory:
    """By its id or the first eight characters of it. Raises Refusal."""
    try:
        if _ID.fullmatch(id):
            return await pet.memory(id, user=user)
    except NotFound:
        pass
    raise Refusal(404, "memory_not_found", "there is no such memory", type="not_found_error")


def _shown(session: str, memory: Memory) -> SessionMemory:
    return SessionMemory(
        id=memory.id,
        session_id=session,
        memory_content=memory.content,
        memory_type=memory.type,
        importance=memory.importance,
        created_at=memory.created_at,
        last_accessed_at=memory.last_accessed_at,
    )
