"""Routes for the memories of a session. A session is a person, with all that they may read in private, or one
of their conversations, with what was stated in it or added to it."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.errors import ApiError, not_found
from agent.surfaces.http.limits import Strict
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


class NewMemory(Strict):
    """A statement to remember."""

    model_config = example({"content": "Mickael moved to Lyon", "type": "fact", "importance": 0.7})

    content: Content
    type: Type = "fact"
    importance: Importance = DEFAULT_IMPORTANCE
    subjects: Subjects = Field(default_factory=list)
    ttl: Ttl = None


class SessionMemory(BaseModel):
    """A memory of a session, in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True) | example(EXAMPLE)

    id: str
    session_id: str
    memory_content: str
    memory_type: MemoryType
    importance: float
    created_at: datetime
    last_accessed_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a person."""

    id: str
    """As the address has it."""
    user: str
    conversation: str | None
    """None if the session is the person."""

    def shown(self, memory: Memory) -> SessionMemory:
        return SessionMemory(
            id=memory.id,
            session_id=self.id,
            memory_content=memory.content,
            memory_type=memory.type,
            importance=memory.importance,
            created_at=memory.created_at,
            last_accessed_at=memory.last_accessed_at or memory.created_at,
        )


async def _session(sessionId: str, caller: Authenticated, pet: Pet) -> Session:
    """Return the caller's session; for a service that names no user, that of the only possible one. Raises
    the same ApiError for somebody else's session as for one that does not exist."""
    caller.check_may_name()
    if len(sessionId) <= MAX_SESSION:
        user = caller.user or await pet.sessions.only_user(sessionId)
        if user == sessionId:
            return Session(sessionId, user, None)
        if user and (conversation := await pet.sessions.conversation_of(sessionId, user)):
            return Session(sessionId, user, conversation)
    raise not_found("session")


InSession = Annotated[Session, Depends(_session)]


@router.get("")
async def list_session_memories(session: InSession, pet: Pet, limit: Limit = 1000) -> list[SessionMemory]:
    """List the memories of the session, newest first: those that were stated in the conversation or added
    to it; of a person, all that they may read in private."""
    found: list[Memory]
    if session.conversation is None:
        found = await pet.memories.list(user=session.user, limit=limit)
    else:
        found = await pet.sessions.learned_in(session.conversation, user=session.user, limit=limit)
    return [session.shown(memory) for memory in found]


@router.post("", status_code=201, responses={200: {"model": SessionMemory, "description": "Known already"}})
async def add_session_memory(
    session: InSession, given: NewMemory, pet: Pet, response: Response
) -> SessionMemory:
    """Remember one statement, and add it to the session. If the person has told it already, the status is 200
    and the response is the memory that states it. If it is not worth keeping, the status is 422."""
    decision = await pet.remember(user=session.user, **given.model_dump())
    response.status_code = status_of(decision)
    memory = await stored_memory(pet, decision, session.user)
    if session.conversation:
        await pet.sessions.give(session.conversation, memory.id)
    return session.shown(memory)


async def _find(session: InSession, memoryId: str, pet: Pet) -> Memory:
    """Return a memory of the session. Raises ApiError."""
    memory = await find_memory(pet, memoryId, session.user)
    learned_in, here = pet.sessions.learned_in, session.conversation
    if here and not await learned_in(here, user=session.user, id=memory.id):
        raise not_found("memory")
    return memory


Found = Annotated[Memory, Depends(_find)]


@router.get("/{memoryId}")
async def get_session_memory(session: InSession, memory: Found) -> SessionMemory:
    """Return one memory. The status is 404 if the session has none with this id."""
    return session.shown(memory)


@router.delete("/{memoryId}", status_code=204)
async def delete_session_memory(session: InSession, memory: Found, pet: Pet) -> None:
    """Forget a memory, with what it had replaced, the messages that state it and the replies that repeat
    it."""
    await pet.memories.forget(memory.id, user=session.user)


def status_of(decision: Decision) -> int:
    """Return 201 if a memory was made, and 200 if it was known or is not kept."""
    return 200 if decision.action in ("merge", "ignore") else 201


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
            return await pet.memories.get(id, user=user)
        except NotFound:
            steps = [step for step in await pet.memories.history(id, user=user) if step.old_id.startswith(id)]
            id = steps[-1].new_id or "" if steps and steps[-1].reason == CORRECTED else ""
    raise not_found("memory")
