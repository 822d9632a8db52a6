"""Answer `/api/users/{user}/conversations`. Ids hold characters that an address reserves: encode them."""

from typing import Annotated

from fastapi import Query as InQuery
from starlette.responses import Response

from agent.surfaces.http.authentication import Pet
from agent.surfaces.http.rest.users import NEXT_HEADER, User
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import Limit
from agent.types.records_json import ForgottenJson, forgotten_json
from memory.records import Conversation

router = api_routes("/api/users/{user}/conversations", tag="a person")


@router.get("")
async def list_conversations(
    user: User,
    pet: Pet,
    response: Response,
    limit: Limit = 50,
    cursor: Annotated[str | None, InQuery(max_length=200, description=f"`{NEXT_HEADER}` of a page")] = None,
) -> list[Conversation]:
    """List the conversations, the one with the newest message first, each with its summary. The header
    `x-next-cursor` leads to the next page."""
    found = await pet.conversations.list(user=user, limit=limit, cursor=cursor)
    if found.next:
        response.headers[NEXT_HEADER] = found.next
    return found


@router.get("/{id:path}")
async def get_conversation(user: User, id: str, pet: Pet) -> Conversation:
    """Return one conversation. `GET …/messages?conversation=` lists what was said in it."""
    return await pet.conversations.get(id, user=user)


@router.delete("/{id:path}")
async def forget_conversation(user: User, id: str, pet: Pet) -> ForgottenJson:
    """Forget all that the person said in a conversation and was answered, with the memories that rest on it
    alone. The response says what was taken; its `undo_id` brings it back until `undo_until`."""
    return forgotten_json(await pet.conversations.forget_conversation(id, user=user))
