"""Answer for a person: messages, conversations, tasks, check-ins, profile, accounts, export and erasure.

The ids of conversations contain reserved characters: percent-encode them.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Request
from fastapi import Query as InQuery
from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from agent.companion import Companion
from agent.errors import BadInput
from agent.surfaces.http.authentication import Pet
from agent.surfaces.http.identity import MAX_NAME
from agent.surfaces.http.limits import StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.memories import NEXT_HEADER, MessageId, User, written
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import (
    DueTime,
    Limit,
    Status,
)
from agent.types.records_json import (
    FactJson,
    ForgottenJson,
    MessageJson,
    forgotten_json,
    message_json,
)
from memory.people.check_ins import CheckIn
from memory.people.profile import Preferences, Profile
from memory.records import (
    Conversation,
    Erased,
    Task,
    TaskStatus,
)

router = api_routes("/api/users/{user}", tag="a person")
TaskId = Annotated[str, Path(pattern="^[0-9a-fA-F-]{4,36}$")]


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
    return await written(found, MessageJson, message_json)


@router.delete("/messages/{id}")
async def forget_message(user: User, id: MessageId, pet: Pet) -> ForgottenJson:
    """Forget one of the person's messages, the reply to it, and the memories whose only evidence it is."""
    return forgotten_json(await pet.conversations.forget(id, user=user))


@router.get("/conversations")
async def list_conversations(
    user: User,
    pet: Pet,
    response: Response,
    limit: Limit = 50,
    cursor: Annotated[str | None, InQuery(max_length=200, description=f"`{NEXT_HEADER}` of a page")] = None,
) -> list[Conversation]:
    """List the conversations with their summaries; the one with the newest message comes first. The header
    `x-next-cursor` holds the cursor of the next page."""
    found = await pet.conversations.list(user=user, limit=limit, cursor=cursor)
    if found.next:
        response.headers[NEXT_HEADER] = found.next
    return found


@router.get("/conversations/{id:path}")
async def get_conversation(user: User, id: str, pet: Pet) -> Conversation:
    """Return one conversation. `GET …/messages?conversation=` lists its messages."""
    return await pet.conversations.get(id, user=user)


@router.delete("/conversations/{id:path}")
async def forget_conversation(user: User, id: str, pet: Pet) -> ForgottenJson:
    """Forget the person's messages in a conversation, the replies to them, and the memories with no other
    evidence. The response lists what was forgotten. `undo_id` undoes it until `undo_until`."""
    return forgotten_json(await pet.conversations.forget_conversation(id, user=user))


class TaskChange(StrictBody):
    """Fields that are left out stay as they are. `due` is in the person's time zone; `never` removes it."""

    model_config = example({"description": "Call the dentist", "due": "2026-11-27T09:00"})

    description: Annotated[str, Field(max_length=2_000)] = ""
    status: Status = None
    due: DueTime = None


@dataclass(frozen=True, slots=True)
class ChangedTask(Task):
    """A task, and what was done with it."""

    action: Literal["made", "changed", "unchanged"] = "unchanged"


@router.get("/tasks")
async def list_tasks(user: User, pet: Pet, all: bool = False) -> list[Task]:
    """List the open tasks, newest first; with `all` also those that are done."""
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


class FieldValue(StrictBody):
    """A value for one field of the context."""

    model_config = example({"value": "Europe/Paris"})

    value: Annotated[str, Field(max_length=4_000)]


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


class Code(StrictBody):
    """A code that was created for another account."""

    model_config = example({"code": "7KQ2M-X9RTB"})

    code: Annotated[str, Field(min_length=1, max_length=40)]


@router.get("/accounts")
async def list_accounts(user: User, pet: Pet) -> list[str]:
    """List the person's accounts that are linked with this one."""
    return await pet.people.accounts(user=user)


@router.post("/accounts/code", status_code=201)
async def make_code(user: User, pet: Pet, response: Response) -> Code:
    """Return a code that links another account with this one. It works once, for ten minutes. Whoever enters
    it from another account can read what is remembered about this one, so show it only to the person."""
    response.headers["cache-control"] = "no-store"
    return Code(code=await pet.people.link_code(user=user))


@router.post("/accounts")
async def link_account(user: User, body: Code, pet: Pet) -> list[str]:
    """Link this account with the one that created the code. If the code does not work, the status is 409 and
    the message says why. First ask the person whether the other account is theirs."""
    return await pet.people.link(body.code, user=user)


@router.delete("/accounts")
async def unlink_account(user: User, pet: Pet) -> list[str]:
    """Unlink this account from all others, which are returned."""
    return await pet.people.unlink(user=user)


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
