"""The documents that a person may look things up in. They are added on the command line: a path in a request
would be read from the server's own disk."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from agent.messages import writable
from agent.surfaces.http.identity import Pet
from agent.surfaces.http.people import Person
from agent.surfaces.http.refusals import Refusal
from memory.audience import user_key

router = APIRouter(prefix="/api/users/{user}/knowledge", tags=["documents"])

Json = dict[str, Any]


@router.get("")
async def documents(user: Person, pet: Pet) -> list[Json]:
    """Their own documents and everybody's, by path."""
    return [asdict(document) for document in await pet.knowledge_documents(user=user)]


@router.get("/search")
async def search(
    user: Person,
    pet: Pet,
    query: Annotated[str, Query(min_length=1, max_length=2_000, examples=["who pays for train tickets?"])],
    limit: Annotated[int, Query(ge=1, le=50)] = 5,
) -> list[Json]:
    """The passages that bear on the query, best first."""
    return [asdict(chunk) for chunk in await pet.search_knowledge(writable(query), user=user, limit=limit)]


@router.delete("/{id}", status_code=204)
async def remove(user: Person, id: Annotated[str, Path(pattern="^[0-9a-f-]{36}$")], pet: Pet) -> None:
    """Take away a document of their own, by its id."""
    own = {
        document.id
        for document in await pet.knowledge_documents(user=user)
        if document.owner == user_key(user)
    }
    if id not in own:
        raise Refusal(404, "document_not_found", "there is no such document", type="not_found_error")
    await pet.remove_knowledge(id, user=user)
