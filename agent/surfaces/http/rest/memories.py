"""Answer for the memories of a person. What may be read is the same as in a private conversation.

Responses have the shapes of the command line's `--json`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path
from fastapi import Query as InQuery
from pydantic import Field, TypeAdapter
from starlette.responses import Response

from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.identity import MAX_NAME
from agent.surfaces.http.limits import Id, StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.session_memories import NewMemory, find_memory, status_of, stored_memory
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import (
    Content,
    Importance,
    Limit,
    Page,
    Query,
    Ttl,
    Type,
    read_user,
    read_value,
)
from agent.types.records_json import (
    DecisionJson,
    ForgottenJson,
    HitJson,
    MemoryJson,
    MessageJson,
    decision_json,
    forgotten_json,
    hit_json,
    memory_json,
    message_json,
)
from memory.audience import Audience
from memory.process.pace import unhurried
from memory.records import (
    ForgetKind,
    Hit,
    HitKind,
    Memory,
    MemoryType,
    MemoryUpdate,
)
from memory.search.excerpts import Excerpt, excerpts
from memory.sql.messages.message_rows import Line

T = TypeVar("T")

router = api_routes("/api/users/{user}", tag="a person")


async def _path_user(user: Annotated[str, Path(max_length=MAX_NAME)], caller: Authenticated) -> str:
    """Return the user in the path, whom the caller acts for. Raises BadInput if it is empty."""
    return caller.user or read_value("user", read_user, user)


User = Annotated[str, Depends(_path_user)]
MessageId = Annotated[str, Field(pattern="^[0-9a-f-]{8,36}$")]


async def _memory(user: User, id: str, pet: Pet) -> Memory:
    """Return the memory in the path. Raises ApiError."""
    return await find_memory(pet, id, user)


PathMemory = Annotated[Memory, Depends(_memory)]


class MemoryChange(StrictBody):
    """A new wording of a memory. Fields that are left out stay as they are."""

    model_config = example({"content": "Mickael lives in Lyon"})

    content: Content
    type: Type | None = None
    importance: Importance | None = None
    ttl: Ttl = None


class ForgetRequest(StrictBody):
    """Names what is to be forgotten by its id (or the first eight characters), and the message that asks for
    it."""

    id: Annotated[str, Field(min_length=1, max_length=400)]
    kind: ForgetKind = "memory"
    asked_in: Annotated[str, Field(max_length=36)] = ""


class SearchHitJson(HitJson):
    """A search hit. For a message, `excerpt` also holds the messages around it that it answers or
    continues."""

    excerpt: list[MessageJson]


NEXT_HEADER = "x-next-cursor"
"""The header that names the following page, if there is one."""
AtTime = Annotated[str | None, InQuery(max_length=40, description="a day, or a time with a zone")]
Tags = Annotated[list[Id], InQuery(max_length=50)]


async def _narrowing(
    subjects: Tags = [],  # noqa: B006 - never changed
    since: AtTime = None,
    until: AtTime = None,
    author: Annotated[str, InQuery(max_length=MAX_NAME, description="only what this person said")] = "",
    cursor: Annotated[str | None, InQuery(max_length=200, description=f"`{NEXT_HEADER}` of a page")] = None,
) -> dict[str, Any]:
    """Return the filters of a list or a search, and the cursor of its page."""
    return {"subjects": subjects, "since": since, "until": until, "author": author, "cursor": cursor}


Narrowing = Annotated[dict[str, Any], Depends(_narrowing)]


async def written(rows: Sequence[T], kind: type[Any], as_json: Callable[[T], Any]) -> Response:
    """Return rows as a JSON list. Rows are written one by one, so that a long list does not block other
    requests."""
    json = TypeAdapter(kind)
    parts = [json.dump_json(as_json(row)) async for row in unhurried(rows)]
    next = rows.next if isinstance(rows, Page) else None
    headers = {NEXT_HEADER: next} if next else None
    return Response(b"[%b]" % b",".join(parts), media_type="application/json", headers=headers)


@router.get("/memories", response_model=list[MemoryJson])
async def list_memories(
    *,
    user: User,
    pet: Pet,
    narrowing: Narrowing,
    limit: Limit = 1000,
    kind: MemoryType | None = None,
) -> Response:
    """List what is remembered, newest first. The header `x-next-cursor` holds the cursor of the next page."""
    found = await pet.memories.list(user=user, limit=limit, kind=kind, **narrowing)
    return await written(found, MemoryJson, memory_json)


@router.get("/memories/search", response_model=list[SearchHitJson])
async def search_memories(
    *,
    user: User,
    pet: Pet,
    narrowing: Narrowing,
    query: Query = "",
    limit: Limit = 10,
    kind: HitKind | None = None,
) -> Response:
    """Search facts and past messages. The best match comes first; without a query, the newest. The header
    `x-next-cursor` holds the cursor of the next page."""
    hits = await pet.memories.search(query, user=user, limit=limit, kind=kind, **narrowing)
    around = await pet.components.recall.around(hits, Audience.of(user))
    return await written(
        hits, SearchHitJson, lambda hit: SearchHitJson(**hit_json(hit), excerpt=_excerpt(hit, around))
    )


def _excerpt(hit: Hit, around: Mapping[str, Sequence[Line]]) -> list[MessageJson]:
    """Return a message with the messages that it answers or continues; an empty list if the hit is not a
    message."""
    return [
        message_json(line.message)
        for one in excerpts([hit], around)
        if isinstance(one, Excerpt)
        for line in one.lines
    ]


@router.post("/memories", status_code=201, responses={200: {"model": DecisionJson}})
async def remember(user: User, body: NewMemory, pet: Pet, response: Response) -> DecisionJson:
    """Remember one statement. The response says whether it was added, merged, ignored or replaced another
    memory, and why. The status is 200 if no memory was made."""
    decision = await pet.remember(user=user, **body.model_dump())
    response.status_code = status_of(decision)
    return decision_json(decision)


@router.get("/memories/{id}")
async def get_memory(memory: PathMemory) -> MemoryJson:
    """Return one memory. The status is 404 if the person has none with this id."""
    return memory_json(memory)


@router.patch("/memories/{id}")
async def update_memory(user: User, old: PathMemory, body: MemoryChange, pet: Pet) -> MemoryJson:
    """Replace a memory with a new wording. The old one stays in its history, and its id resolves to the new
    one."""
    decision = await pet.memories.update(old.id, user=user, **body.model_dump(exclude_none=True))
    return memory_json(await stored_memory(pet, decision, user))


@router.delete("/memories/{id}", status_code=204)
async def delete_memory(user: User, memory: PathMemory, pet: Pet) -> None:
    """Forget a memory, as `POST …/forget` does. The response is empty."""
    await pet.memories.forget(memory.id, user=user)


@router.post("/memories/{id}/forget")
async def forget_memory(user: User, memory: PathMemory, pet: Pet) -> ForgottenJson:
    """Forget a memory, the memories that it replaced, the messages that state it and the replies that repeat
    it. The response lists what was forgotten. `undo_id` undoes it until `undo_until`."""
    return forgotten_json(await pet.memories.forget(memory.id, user=user))


@router.post("/forget")
async def forget_offered(user: User, named: ForgetRequest, pet: Pet) -> ForgottenJson:
    """Forget a memory, message or task that an answer names in `forget`, or a receipt in `near`."""
    return forgotten_json(await pet.memories.forget(user=user, **named.model_dump()))


@router.post("/forgotten/{id}/undo")
async def undo_forget(user: User, id: MessageId, pet: Pet) -> ForgottenJson:
    """Undo a forgetting, until its `undo_until`."""
    return forgotten_json(await pet.memories.undo_forget(id, user=user))


@router.get("/memories/{id}/history")
async def list_history(user: User, memory: PathMemory, pet: Pet) -> list[MemoryUpdate]:
    """List what replaced what, when and why, oldest first."""
    return await pet.memories.history(memory.id, user=user)


@router.post("/memories/{id}/undo")
async def undo_replacement(user: User, memory: PathMemory, pet: Pet) -> MemoryUpdate:
    """Undo the last replacement. The replaced memory is active again."""
    return await pet.memories.undo(memory.id, user=user)
