"""Answer `/api/users/{user}/conversations`. Ids contain reserved characters: percent-encode them."""

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
    """List the conversations with their summaries; the one with the newest message comes first. The header
    `x-next-cursor` holds the cursor of the next page."""
    found = await pet.conversations.list(user=user, limit=limit, cursor=cursor)
    if found.next:
        response.headers[NEXT_HEADER] = found.next
    return found


@router.get("/{id:path}")
async def get_conversation(user: User, id: str, pet: Pet) -> Conversation:
    """Return one conversation. `GET …/messages?conversation=` lists its messages."""
    return await pet.conversations.get(id, user=user)


@router.delete("/{id:path}")
async def forget_conversation(user: User, id: str, pet: Pet) -> ForgottenJson:
    """Forget the person's messages in a conversation, the replies to them, and the memories with no other
    evidence. The response lists what was forgotten. `undo_id` undoes it until `undo_until`."""
    return forgotten_json(await pet.conversations.forget_conversation(id, user=user))
