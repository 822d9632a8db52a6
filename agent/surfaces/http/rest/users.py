"""Routes for a person's memories, tasks, profile, export and erasure, as in a private conversation. Responses
have the shapes of the command line's `--json`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from agent.errors import BadInput
from agent.surfaces.http.authentication import MAX_NAME, Authenticated, Pet
from agent.surfaces.http.errors import not_found
from agent.surfaces.http.field_limits import Id
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.memories import (
    Content,
    Importance,
    Limit,
    NewMemory,
    Ttl,
    find_memory,
    stored_memory,
)
from agent.surfaces.http.rest.strict import Strict
from agent.surfaces.records_json import (
    decision_json,
    forgotten_json,
    hit_json,
    message_json,
    task_json,
)
from memory.audience import Audience
from memory.records import Hit, MemoryType, MemoryUpdate, Task, TaskStatus, memory_json
from memory.search.excerpts import Excerpt, excerpts
from memory.sql.message_rows import Line
from memory.text import storable

router = APIRouter(prefix="/api/users/{user}", tags=["a person"])


def _path_user(user: Annotated[str, Path(max_length=MAX_NAME)], caller: Authenticated) -> str:
    """Return the user in the path. Raises ApiError if the caller may not act for them."""
    named = user.strip()
    if not named or not named.isprintable():
        raise not_found("user")
    return str(caller.acting_for(named))


User = Annotated[str, Depends(_path_user)]
Json = dict[str, Any]
TaskId = Annotated[str, Path(pattern="^[0-9a-fA-F-]{4,36}$")]
MessageId = Annotated[str, Field(pattern="^[0-9a-f-]{8,36}$")]


class Changed(Strict):
    """A new wording of a memory. Fields that are left out stay as they are."""

    model_config = example({"content": "Mickael lives in Lyon"})

    content: Content
    type: MemoryType | None = None
    importance: Importance | None = None
    ttl: Ttl | None = None


class TaskChange(Strict):
    """Fields that are left out stay as they are. `due` is in the person's time zone; `never` removes it."""

    model_config = example({"description": "Call the dentist", "due": "2026-11-27T09:00"})

    description: Annotated[str, Field(max_length=2_000)] = ""
    status: TaskStatus | None = None
    due: Annotated[str | None, Field(max_length=60)] = None


class Value(Strict):
    """A value for one field of the context."""

    model_config = example({"value": "Europe/Paris"})

    value: Annotated[str, Field(max_length=4_000)]


@router.get("/memories")
async def memories(user: User, pet: Pet, limit: Limit = 1000) -> list[Json]:
    """List what is remembered, newest first."""
    return [memory_json(memory) for memory in await pet.memories.list(user=user, limit=limit)]


@router.get("/memories/search")
async def search(
    user: User,
    pet: Pet,
    query: Annotated[str, Query(max_length=2_000, examples=["what can Lucie not eat?"])] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    subject: Annotated[list[Id], Query(max_length=50)] = [],  # noqa: B006 - never changed
) -> list[Json]:
    """Search facts and past messages. The best match comes first; without a query the newest. The `excerpt`
    of a message holds it with what it answers or continues."""
    hits = await pet.search_memories(storable(query), user=user, limit=limit, subjects=subject)
    around = await pet.components.recall.around(hits, Audience.of(user))
    return [hit_json(hit) | {"excerpt": _excerpt(hit, around)} for hit in hits]


def _excerpt(hit: Hit, around: Mapping[str, Sequence[Line]]) -> list[dict[str, Any]]:
    """Return a found message with what it answers or continues; an empty list for anything else."""
    return [
        message_json(line.message)
        for one in excerpts([hit], around)
        if isinstance(one, Excerpt)
        for line in one.lines
    ]


@router.post("/memories", status_code=201)
async def remember(user: User, given: NewMemory, pet: Pet, response: Response) -> Json:
    """Remember one statement. The response says whether it was added, merged, ignored or replaced another
    memory, and why. The status is 200 if no memory was made."""
    decision = await pet.remember(user=user, **given.model_dump())
    if decision.action in ("merge", "ignore"):
        response.status_code = 200
    return decision_json(decision) | {"reason": decision.reason}


@router.get("/memories/{id}")
async def memory(user: User, id: str, pet: Pet) -> Json:
    """Return one memory. The status is 404 if the person has none with this id."""
    return memory_json(await find_memory(pet, id, user))


@router.patch("/memories/{id}")
async def update(user: User, id: str, given: Changed, pet: Pet) -> Json:
    """Replace a memory with a new wording. The old one stays in its history, and its id leads to the new
    one."""
    old = await find_memory(pet, id, user)
    decision = await pet.memories.update(old.id, user=user, **given.model_dump(exclude_none=True))
    return memory_json(await stored_memory(pet, decision, user))


@router.delete("/memories/{id}", status_code=204)
async def delete(user: User, id: str, pet: Pet) -> None:
    """Forget a memory, as `POST …/forget` does, with an empty response."""
    await pet.memories.forget((await find_memory(pet, id, user)).id, user=user)


@router.post("/memories/{id}/forget")
async def forget(user: User, id: str, pet: Pet) -> Json:
    """Forget a memory, with what it had replaced, the messages that state it and the replies that repeat it.
    The response says what was taken; its `undo_id` brings it back until `undo_until`."""
    return forgotten_json(await pet.memories.forget((await find_memory(pet, id, user)).id, user=user))


@router.post("/forgotten/{id}/undo")
async def undo_forget(user: User, id: MessageId, pet: Pet) -> Json:
    """Bring back what was forgotten, while it can be brought back."""
    return forgotten_json(await pet.memories.undo_forget(id, user=user))


@router.get("/messages")
async def messages(
    user: User,
    pet: Pet,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    before: Annotated[MessageId | None, Query(description="only older ones than this message")] = None,
) -> list[Json]:
    """List what was said and answered, newest first. A forgotten message has no text."""
    found = await pet.conversations.messages(user=user, limit=limit, before=before)
    return [message_json(message) for message in found]


@router.delete("/messages/{id}")
async def delete_message(user: User, id: MessageId, pet: Pet) -> Json:
    """Forget one of the person's messages, the reply to it, and the memories that rest on it alone."""
    return forgotten_json(await pet.conversations.forget(id, user=user))


@router.get("/memories/{id}/history")
async def history(user: User, id: str, pet: Pet) -> list[MemoryUpdate]:
    """List what replaced what, when and why, oldest first."""
    return await pet.memories.history((await find_memory(pet, id, user)).id, user=user)


@router.post("/memories/{id}/undo")
async def undo(user: User, id: str, pet: Pet) -> MemoryUpdate:
    """Undo the last replacement. The replaced memory is active again."""
    return await pet.memories.undo((await find_memory(pet, id, user)).id, user=user)


@router.get("/tasks")
async def tasks(user: User, pet: Pet, all: bool = False) -> list[Task]:
    """List the open tasks, newest first; with `all` the finished ones too."""
    return await pet.tasks.list(user=user, done=all)


@router.post("/tasks", status_code=201)
async def add_task(user: User, given: TaskChange, pet: Pet, response: Response) -> Json:
    """Create a task. A task with the same words is not created twice: the status is 200 then."""
    if not given.description.strip():
        raise BadInput("description: a new task needs one")
    made = await _update_task(user, None, given, pet)
    if made["action"] != "made":
        response.status_code = 200
    return made


@router.delete("/tasks/{id}", status_code=204)
async def delete_task(user: User, id: TaskId, pet: Pet) -> None:
    """Delete a task, finished or not. What was said of it stays in the transcript."""
    await pet.tasks.forget(id, user=user)


@router.patch("/tasks/{id}")
async def change_task(user: User, id: TaskId, given: TaskChange, pet: Pet) -> Json:
    """Change or finish a task. The first four characters of its id are enough."""
    return await _update_task(user, id, given, pet)


async def _update_task(user: str, id: str | None, given: TaskChange, pet: Pet) -> Json:
    change = await pet.tasks.update(
        given.description, user=user, status=given.status, id=id, due=given.due, alike=False
    )
    return task_json(change.task) | {"action": change.action}


@router.get("/context")
async def context(user: User, pet: Pet) -> Json:
    """Return the profile, the most important facts and the open tasks."""
    return dict((await pet.people.context(user=user)).to_json())


@router.put("/context/{field}")
async def set_context(user: User, field: str, given: Value, pet: Pet) -> Json:
    """Set a field such as `name`, `timezone`, `language` or `tone`, or add to a list such as `goals`."""
    if not given.value.strip():
        raise BadInput("value: empty; DELETE forgets the field")
    return dict((await pet.people.set_context(field, given.value, user=user)).to_json())


@router.delete("/context/{field}")
async def forget_context(user: User, field: str, pet: Pet) -> Json:
    """Remove a field, or a whole list."""
    return dict((await pet.people.set_context(field, "", user=user)).to_json())


@router.get("/export")
async def export(user: User, pet: Pet) -> Json:
    """Export all data of the person, as `hachi memories export` does."""
    return await pet.conversations.export(user=user)


@router.delete("")
async def erase(request: Request, user: User, pet: Pet) -> Json:
    """Delete all data of the person. The response says what was deleted and what is left."""
    request.state.unnamed = True  # the audit's line stays, and names nobody
    return (await pet.people.erase(user=user)).to_json()
