"""What is known of a person, and what they want kept track of: what the command line does for them, over
HTTP. Everything is as it may be read in private, and shaped as `--json` prints it."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from agent.errors import BadInput
from agent.surfaces.cli.shown import decision_json, hit_json, memory_json, task_json, update_json
from agent.surfaces.http.figures import Figures
from agent.surfaces.http.identity import LONGEST_NAME, Asking, Pet
from agent.surfaces.http.memories import Limit, NewMemory, kept, the_memory
from agent.surfaces.http.refusals import Refusal
from agent.types import writable
from memory.facts.writer import MAX_CONTENT
from memory.records import MemoryType, TaskStatus
from memory.zones import read_time

router = APIRouter(prefix="/api/users/{user}", tags=["a person"])


def _acting_for(user: Annotated[str, Path(max_length=LONGEST_NAME)], caller: Asking) -> str:
    """The person of the address, where the key may act for them."""
    named = user.strip()
    if not named or not named.isprintable():
        raise Refusal(404, "user_not_found", "there is no such user", type="not_found_error")
    return str(caller.acting_for(named))


Person = Annotated[str, Depends(_acting_for)]
Json = dict[str, Any]


class Changed(BaseModel):
    """A memory, said differently; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Mickael lives in Lyon"}]})

    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, pattern=r"\S")]
    type: MemoryType | None = None
    importance: Annotated[float | None, Field(ge=0, le=1)] = None
    ttl: Annotated[str | None, Field(max_length=100)] = None


class TaskChange(BaseModel):
    """What is left out stays as it is; `due` counts in the person's zone, and `never` takes it away."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"description": "Call the dentist", "due": "2026-11-27T09:00"}]}
    )

    description: Annotated[str, Field(max_length=2_000)] = ""
    status: TaskStatus | None = None
    due: Annotated[str | None, Field(max_length=60)] = None


class Value(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Europe/Paris"}]})

    value: Annotated[str, Field(max_length=4_000)]


# Memories.


@router.get("/memories")
async def memories(user: Person, pet: Pet, limit: Limit = 1000) -> list[Json]:
    """What is remembered, newest first."""
    return [memory_json(memory) for memory in await pet.memories(user=user, limit=limit)]


@router.get("/memories/search")
async def search(
    request: Request,
    user: Person,
    pet: Pet,
    query: Annotated[str, Query(min_length=1, max_length=2_000, examples=["what can Lucie not eat?"])],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    subject: Annotated[list[str], Query(max_length=50)] = [],  # noqa: B006 - never changed
) -> list[Json]:
    """Facts and past messages, best first."""
    hits = await pet.search_memories(writable(query), user=user, limit=limit, subjects=subject)
    figures: Figures = request.app.state.figures
    figures.searched(len(hits))
    return [hit_json(hit) for hit in hits]


@router.post("/memories")
async def remember(user: Person, given: NewMemory, pet: Pet) -> Json:
    """Remember one statement; says what was decided: `add`, `merge`, `replace` or `ignore`, and why."""
    decision = await pet.remember(given.content, user=user, **given.model_dump(exclude={"content"}))
    return decision_json(decision) | {"reason": decision.reason}


@router.get("/memories/{id}")
async def memory(user: Person, id: str, pet: Pet) -> Json:
    return memory_json(await the_memory(pet, id, user))


@router.patch("/memories/{id}")
async def update(user: Person, id: str, given: Changed, pet: Pet) -> Json:
    """Say it differently: a new memory takes its place, and what it said before stays in its history."""
    old = await the_memory(pet, id, user)
    changes = given.model_dump(exclude={"content"}, exclude_none=True)
    decision = await pet.update_memory(old.id, given.content, user=user, **changes)
    return memory_json(await kept(pet, decision, user))


@router.delete("/memories/{id}", status_code=204)
async def delete(user: Person, id: str, pet: Pet) -> None:
    """Take it away for good, with what it had replaced."""
    await pet.delete_memory((await the_memory(pet, id, user)).id, user=user)


@router.get("/memories/{id}/history")
async def history(user: Person, id: str, pet: Pet) -> list[Json]:
    """What replaced what, when and why, oldest first."""
    found = await the_memory(pet, id, user)
    return [update_json(step) for step in await pet.history(found.id, user=user)]


@router.post("/memories/{id}/undo")
async def undo(user: Person, id: str, pet: Pet) -> Json:
    """Take the last replacement back: what was replaced holds again."""
    return update_json(await pet.undo((await the_memory(pet, id, user)).id, user=user))


# Tasks.


@router.get("/tasks")
async def tasks(user: Person, pet: Pet, all: bool = False) -> list[Json]:
    """The open tasks, newest first; with `all` the finished ones too."""
    return [task_json(task) for task in await pet.services.tasks.list(user, done=all)]


@router.post("/tasks")
async def add_task(user: Person, given: TaskChange, pet: Pet) -> Json:
    """Make a task. One of the very same words that is there already is not made twice."""
    if not given.description.strip():
        raise BadInput("description: a new task needs one")
    return await _update_task(user, None, given, pet)


@router.patch("/tasks/{id}")
async def change_task(
    user: Person, id: Annotated[str, Path(pattern="^[0-9a-fA-F-]{4,36}$")], given: TaskChange, pet: Pet
) -> Json:
    """Change or finish a task, by its id or the first four characters of it."""
    return await _update_task(user, id, given, pet)


async def _update_task(user: str, id: str | None, given: TaskChange, pet: Pet) -> Json:
    now, due = pet.clock(), given.due.strip() if given.due else None
    known = await pet.context(user=user)
    try:
        when = "never" if due == "never" else read_time(due, known.zone, now) if due else None
    except ValueError as error:
        raise BadInput(f"due: {error}") from None
    change = await pet.services.tasks.update(
        user,
        given.description,
        given.status,
        now=now,
        id=id,
        due=when,  # type: ignore[arg-type]
        alike=False,
    )
    return task_json(change.task) | {"action": change.action}


# What is known of them, as a whole.


@router.get("/context")
async def context(user: Person, pet: Pet) -> Json:
    """What they told of themselves, the facts that matter most, and their open tasks."""
    return dict((await pet.context(user=user)).to_json())


@router.put("/context/{field}")
async def set_context(user: Person, field: str, given: Value, pet: Pet) -> Json:
    """Set a field (`name`, `timezone`, `language`, `tone` …), or add to a list such as `goals`."""
    if not given.value.strip():
        raise BadInput("value: empty; DELETE forgets the field")
    return dict((await pet.set_context(field, given.value, user=user)).to_json())


@router.delete("/context/{field}")
async def forget_context(user: Person, field: str, pet: Pet) -> Json:
    """Forget a field; of a list, all of it."""
    return dict((await pet.set_context(field, "", user=user)).to_json())


@router.get("/export")
async def export(user: Person, pet: Pet) -> Json:
    """Everything of theirs, as `hachi memories export` writes it."""
    return await pet.export(user=user)


@router.delete("")
async def erase(user: Person, pet: Pet) -> Json:
    """Forget them: all of theirs, everywhere, for good. The receipt says what went and what is left."""
    return (await pet.erase(user=user)).to_json()
