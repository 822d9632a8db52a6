"""Answer for the documents of a person, of a place, and of everybody.

Clients send the content, not a path, which would be read from the server's own disk.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request
from fastapi import Query as InQuery
from pydantic import Field
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticated, Pet, require_admin
from agent.surfaces.http.errors import forbidden, not_found
from agent.surfaces.http.limits import StrictBody
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.memories import User
from agent.surfaces.http.routes import api_routes
from agent.types.arguments import Limit, Query
from agent.types.meanings import owner_of_documents
from memory.documents.files import MAX_BYTES
from memory.records import Chunk, Document

MAX_PLACE = 400
"""Characters of a place's name."""


@dataclass(frozen=True)
class StoredDocument(Document):
    """A document, and whether it was added, replaced or unchanged."""

    action: Literal["added", "replaced", "unchanged"]


ADDED: dict[int | str, dict[str, Any]] = {
    200: {"model": StoredDocument, "description": "The name was there already: replaced, or unchanged"}
}
FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class NewDocument(StrictBody):
    """A document as text."""

    model_config = example({"name": "travel.md", "text": "# Travel\n\nThe office pays for train tickets."})

    name: Annotated[
        str, Field(min_length=1, max_length=200, description="its suffix decides how it is parsed")
    ]
    text: Annotated[str, Field(min_length=1, max_length=MAX_BYTES, pattern=r"\S")]


Owner = dict[str, str | None]
"""Arguments `user` or `place` of the owner. Neither means everybody."""


async def _person(user: User) -> Owner:
    return {"user": user, "place": None}


async def _shared(
    caller: Authenticated,
    place: Annotated[
        str | None,
        InQuery(
            max_length=MAX_PLACE, description="default: everybody's documents", examples=["acme/general"]
        ),
    ] = None,
) -> Owner:
    """Return a place as owner, for a service's key, since only a service knows who may read there. Raises
    ApiError, or BadInput for an invalid or private place."""
    if place is not None:
        if caller.user is not None or not caller.service:
            raise forbidden("a place's documents need a service's key, and a request that names no user")
        caller.check_may_name()
        owner_of_documents(None, place)
    return {"user": None, "place": place}


async def _shared_for_writing(owner: Annotated[Owner, Depends(_shared)], caller: Authenticated) -> Owner:
    """Return the owner. Only admins may change everybody's documents. Raises ApiError."""
    if owner["place"] is None:
        await require_admin(caller)
    return owner


def _routes(prefix: str, whose: str, reader: Callable[..., Any], writer: Callable[..., Any]) -> APIRouter:
    """Return the routes for one kind of owner. `whose` is the suffix of the operation ids."""
    router = api_routes(prefix, tag="documents")
    Read = Annotated[Owner, Depends(reader)]
    Write = Annotated[Owner, Depends(writer)]

    @router.get("", operation_id=f"list_documents{whose}")
    async def documents(owner: Read, pet: Pet) -> list[Document]:
        """List the documents that can be searched, including everybody's, by name."""
        return await pet.documents.list(**owner)

    @router.get("/search", operation_id=f"search_documents{whose}")
    async def search(owner: Read, pet: Pet, query: Query, limit: Limit = 5) -> list[Chunk]:
        """Search for passages. The best match comes first."""
        return await pet.documents.search(query, **owner, limit=limit)

    @router.post("", status_code=201, responses=ADDED, operation_id=f"add_document{whose}")
    async def add(owner: Write, given: NewDocument, pet: Pet, response: Response) -> StoredDocument:
        """Add a document as text. It replaces the one of the same name."""
        return await _store(pet, owner, given.name, given.text, response)

    # PUT, so that any content type is safe: a page of another site cannot make a browser send a PUT.
    @router.put(
        "/files/{name}",
        status_code=201,
        responses=ADDED,
        openapi_extra=FILE_BODY,
        operation_id=f"put_document{whose}",
    )
    async def put(owner: Write, name: str, request: Request, pet: Pet, response: Response) -> StoredDocument:
        """Add a file; the body is its content. It replaces the one of the same name."""
        return await _store(pet, owner, name, await request.body(), response)

    @router.delete("/{id}", status_code=204, operation_id=f"remove_document{whose}")
    async def remove(owner: Write, id: Annotated[str, Path(pattern="^[0-9a-f-]{36}$")], pet: Pet) -> None:
        """Remove a document of this owner."""
        key = owner_of_documents(**owner)
        if not any((known.id, known.owner) == (id, key) for known in await pet.documents.list(**owner)):
            raise not_found("document")
        await pet.documents.remove(id, **owner)

    return router


async def _store(
    pet: Companion, owner: Owner, name: str, content: str | bytes, response: Response
) -> StoredDocument:
    stored = await pet.documents.add(name, content, **owner)
    response.status_code = 201 if stored.action == "added" else 200
    return StoredDocument(**asdict(stored.document), action=stored.action)


router = _routes("/api/users/{user}/knowledge", "", _person, _person)
of_places = _routes("/api/knowledge", "_of_place", _shared, _shared_for_writing)
