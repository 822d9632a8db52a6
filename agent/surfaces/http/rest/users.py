"""Answer `/api/users/{user}`: memories, tasks, profile, export and erasure. What may be read is the same as
in a private conversation.

Responses have the shapes of the command line's `--json`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, Path, Request
from fastapi import Query as InQuery
from pydantic import Field, TypeAdapter
from starlette.responses import Response
from typing_extensions import TypedDict

from agent.companion import Companion
from agent.errors import BadInput
from agent.surfaces.http.authentication import Authenticated, Pet
from agent.surfaces.http.identity import MAX_NAME
from agent.surfaces.http.limits import Id, StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.session_memories import NewMemory, find_memory, status_of, stored_memory
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import (
    Content,
    DueTime,
    Importance,
    Limit,
    Page,
    Query,
    Status,
    Ttl,
    Type,
    read_user,
    read_value,
)
from agent.types.records_json import (
    DecisionJson,
    FactJson,
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
from memory.people.check_ins import CheckIn
from memory.people.profile import Preferences, Profile
from memory.process.pace import unhurried
from memory.records import (
    Erased,
    ForgetKind,
    Hit,
    HitKind,
    Memory,
    MemoryType,
    MemoryUpdate,
    Task,
    TaskStatus,
)
from memory.search.excerpts import Excerpt, excerpts
from memory.sql.messages.message_rows import Line

T = TypeVar("T")

router = api_routes("/api/users/{user}", tag="a person")


async def _path_user(user: Annotated[str, Path(max_length=MAX_NAME)], caller: Authenticated) -> str:
    """Return the user in the path, whom the caller acts for. Raises BadInput if it is empty."""
    return caller.user or read_value("user", read_user, user)


User = Annotated[str, Depends(_path_user)]
TaskId = Annotated[str, Path(pattern="^[0-9a-fA-F-]{4,36}$")]
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


class TaskChange(StrictBody):
    """Fields that are left out stay as they are. `due` is in the person's time zone; `never` removes it."""

    model_config = example({"description": "Call the dentist", "due": "2026-11-27T09:00"})

    description: Annotated[str, Field(max_length=2_000)] = ""
    status: Status = None
    due: DueTime = None


class FieldValue(StrictBody):
    """A value for one field of the context."""

    model_config = example({"value": "Europe/Paris"})

    value: Annotated[str, Field(max_length=4_000)]


class SearchHitJson(HitJson):
    """A search hit. For a message, `excerpt` also holds the messages around it that it answers or
    continues."""

    excerpt: list[MessageJson]


@dataclass(frozen=True, slots=True)
class ChangedTask(Task):
    """A task, and what was done with it."""

    action: Literal["made", "changed", "unchanged"] = "unchanged"


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


async def _written(rows: Sequence[T], kind: type[Any], as_json: Callable[[T], Any]) -> Response:
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
    return await _written(found, MemoryJson, memory_json)


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
    return await _written(
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


@router.get("/messages", response_model=list[MessageJson])
async def list_messages(
    user: User,
    pet: Pet,
    limit: Limit = 50,
    before: Annotated[
        MessageId | None, InQuery(description="only messages older than the one with this id")
    ] = None,
    conversation: Annotated[
        str | None, InQuery(max_length=MAX_NAME, description="only messages of the conversation with this id")
    ] = None,
) -> Response:
    """List the person's messages and the replies, newest first, without forgotten ones."""
    found = await pet.conversations.messages(user=user, limit=limit, before=before, conversation=conversation)
    return await _written(found, MessageJson, message_json)


@router.delete("/messages/{id}")
async def forget_message(user: User, id: MessageId, pet: Pet) -> ForgottenJson:
    """Forget one of the person's messages, the reply to it, and the memories whose only evidence it is."""
    return forgotten_json(await pet.conversations.forget(id, user=user))


@router.get("/memories/{id}/history")
async def list_history(user: User, memory: PathMemory, pet: Pet) -> list[MemoryUpdate]:
    """List what replaced what, when and why, oldest first."""
    return await pet.memories.history(memory.id, user=user)


@router.post("/memories/{id}/undo")
async def undo_replacement(user: User, memory: PathMemory, pet: Pet) -> MemoryUpdate:
    """Undo the last replacement. The replaced memory is active again."""
    return await pet.memories.undo(memory.id, user=user)


@router.get("/tasks")
async def list_tasks(user: User, pet: Pet, all: bool = False) -> list[Task]:
    """Create a task. If there is one with the same words, none is created and the status is 200."""
    return await pet.tasks.list(user=user, done=all)


@router.post("/tasks", status_code=201, responses={200: {"model": ChangedTask}})
async def add_task(user: User, body: TaskChange, pet: Pet, response: Response) -> ChangedTask:
    """Create a task. If an open task has the same words, none is created and the status is 200."""
    made = await _update_task(user, None, body, pet)
    response.status_code = 201 if made.action == "made" else 200
    return made


@router.delete("/tasks/{id}", status_code=204)
async def delete_task(user: User, id: TaskId, pet: Pet) -> None:
    """Forget a task, finished or not. Messages about it stay in the transcript."""
    await pet.tasks.forget(id, user=user)


@router.patch("/tasks/{id}")
async def update_task(user: User, id: TaskId, body: TaskChange, pet: Pet) -> ChangedTask:
    """Change or finish a task. The first four characters of its id are enough."""
    return await _update_task(user, id, body, pet)


async def _update_task(user: str, id: str | None, given: TaskChange, pet: Companion) -> ChangedTask:
    change = await pet.tasks.update(
        given.description, user=user, status=given.status, id=id, due=given.due, alike=False
    )
    return ChangedTask(**asdict(change.task), action=change.action)


class CheckInsJson(TypedDict):
    wanted: bool
    planned: list[CheckIn]


class CheckInsWanted(StrictBody):
    model_config = example({"wanted": True})

    wanted: bool


@router.get("/check-ins")
async def get_check_ins(user: User, pet: Pet) -> CheckInsJson:
    """Return whether the person wants to be asked how things went, and the planned check-ins."""
    asks = pet.check_ins
    return CheckInsJson(wanted=await asks.wanted(user=user), planned=await asks.list(user=user))


@router.put("/check-ins")
async def set_check_ins(user: User, body: CheckInsWanted, pet: Pet) -> CheckInsJson:
    """Set whether the person wants check-ins. `false` also deletes the planned ones."""
    await pet.check_ins.want(body.wanted, user=user)
    return await get_check_ins(user, pet)


class OpenTaskJson(TypedDict):
    id: str
    description: str
    status: TaskStatus
    due: datetime | None
    created_at: datetime
    last_updated: datetime


class ContextJson(TypedDict):
    """A person's profile, facts and tasks, as `UserContext.to_json` writes them."""

    profile: Profile
    preferences: Preferences
    long_term_facts: list[FactJson]
    open_tasks: list[OpenTaskJson]
    conversation_themes: list[str]
    memory_summary: str | None
    last_updated: datetime | None


@router.get("/context", response_model=ContextJson)
async def get_context(user: User, pet: Pet) -> dict[str, Any]:
    """Return the profile, the most important facts and the open tasks."""
    return (await pet.people.context(user=user)).to_json()


@router.put("/context/{field}", response_model=ContextJson)
async def set_context(user: User, field: str, body: FieldValue, pet: Pet) -> dict[str, Any]:
    """Set a field such as `name`, `timezone`, `language` or `tone`, or add to a list such as `goals`."""
    if not body.value.strip():
        raise BadInput("value: empty; DELETE forgets the field")
    return (await pet.people.set_context(field, body.value, user=user)).to_json()


@router.delete("/context/{field}", response_model=ContextJson)
async def forget_context(user: User, field: str, pet: Pet) -> dict[str, Any]:
    """Remove a field, or a whole list."""
    return (await pet.people.set_context(field, "", user=user)).to_json()


@router.get("/export")
async def export_person(user: User, pet: Pet) -> dict[str, Any]:
    """Export all data of the person, as `hachi memories export` does."""
    return await pet.conversations.export(user=user)


@router.delete("")
async def erase_person(request: Request, user: User, pet: Pet, linked: bool = False) -> Erased:
    """Delete all data of the person, and with `linked` that of their linked accounts. The response says what
    was deleted and what could not be."""
    request.state.unnamed = True  # keep the line of the audit log, but without the person's name
    return await pet.people.erase(user=user, linked=linked)
