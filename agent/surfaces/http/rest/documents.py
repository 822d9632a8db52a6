"""Routes for the documents of a person, of a place, and of everybody. Clients send the content: a path would
read the server's own disk."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from agent.companion import Companion
from agent.services.arguments import owner_of_documents, place_of
from agent.surfaces.http.authentication import Authenticated, Pet, require_admin
from agent.surfaces.http.errors import forbidden, not_found
from agent.surfaces.http.openai_api.completion import example
from agent.surfaces.http.rest.strict import Strict
from agent.surfaces.http.rest.users import Json, User
from memory.audience import GLOBAL, Audience, Place
from memory.documents.files import MAX_BYTES
from memory.records import Chunk, Document
from memory.text import storable

MAX_PLACE = 400
"""Characters of a place's name."""

ADDED: dict[int | str, Json] = {
    201: {"description": "Added"},
    200: {"description": "The name was there already: replaced, or unchanged"},
}
FILE_BODY: Json = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class NewDocument(Strict):
    """A document as text."""

    model_config = example({"name": "travel.md", "text": "# Travel\n\nThe office pays for train tickets."})

    name: Annotated[str, Field(min_length=1, max_length=200, description="its ending says how it is read")]
    text: Annotated[str, Field(min_length=1, max_length=MAX_BYTES, pattern=r"\S")]


@dataclass(frozen=True)
class AddedDocument(Document):
    action: str
    """added, replaced or unchanged"""


@dataclass(frozen=True, slots=True)
class Owner:
    """A person or a place; everybody if neither is given."""

    user: str | None = None
    place: Place | None = None

    @property
    def audience(self) -> Audience:
        """Reads everybody's documents too."""
        if self == Owner():
            return Audience(frozenset({GLOBAL}))
        return Audience.of(self.user or "", self.place)


async def _person(user: User) -> Owner:
    return Owner(user=user)


async def _shared(
    caller: Authenticated,
    place: Annotated[
        str | None,
        Query(max_length=MAX_PLACE, description="unset is everybody's", examples=["acme/general"]),
    ] = None,
) -> Owner:
    """Return a place as owner. Only a service's key proves who may be there. Raises ApiError, or BadInput for
    an unreadable or private place."""
    if place is None:
        return Owner()
    if caller.user is not None or (caller.key is not None and caller.key.kind == "user"):
        raise forbidden("a place's documents need a service's key, and a request that names no user")
    owner_of_documents(None, place)
    return Owner(place=place_of(place))


async def _shared_for_writing(owner: Annotated[Owner, Depends(_shared)], caller: Authenticated) -> Owner:
    """Return the owner; only admins may change everybody's documents. Raises ApiError."""
    if owner.place is None:
        await require_admin(caller)
    return owner


def _router(prefix: str, reader: Callable[..., Any], writer: Callable[..., Any]) -> APIRouter:
    """Return the routes of one kind of owner."""
    router = APIRouter(prefix=prefix, tags=["documents"])
    Read = Annotated[Owner, Depends(reader)]
    Write = Annotated[Owner, Depends(writer)]

    @router.get("")
    async def documents(owner: Read, pet: Pet) -> list[Document]:
        """List the documents that can be searched, everybody's too, by name."""
        return await pet.documents.library.documents(owner.audience)

    @router.get("/search")
    async def search(
        owner: Read,
        pet: Pet,
        query: Annotated[
            str, Query(min_length=1, max_length=2_000, examples=["who pays for train tickets?"])
        ],
        limit: Annotated[int, Query(ge=1, le=50)] = 5,
    ) -> list[Chunk]:
        """Search for passages. The best match comes first."""
        return await pet.documents.library.search(storable(query), owner.audience, limit)

    @router.post("", status_code=201, responses=ADDED)
    async def add(owner: Write, given: NewDocument, pet: Pet, response: Response) -> AddedDocument:
        """Add a document as text. It replaces the one of the same name."""
        return await _store(pet, owner, given.name, given.text, response)

    # PUT with any kind of body: a page elsewhere may not make a browser send that.
    @router.put("/files/{name}", status_code=201, responses=ADDED, openapi_extra=FILE_BODY)
    async def put(owner: Write, name: str, request: Request, pet: Pet, response: Response) -> AddedDocument:
        """Add a file; the body is its content. It replaces the one of the same name."""
        return await _store(pet, owner, name, await request.body(), response)

    @router.delete("/{id}", status_code=204)
    async def remove(owner: Write, id: Annotated[str, Path(pattern="^[0-9a-f-]{36}$")], pet: Pet) -> None:
        """Remove a document of this owner."""
        key = owner_of_documents(owner.user, owner.place)
        readable = await pet.documents.library.documents(owner.audience)
        if not any(document.id == id and document.owner == key for document in readable):
            raise not_found("document")
        await pet.documents.remove(id, user=owner.user, place=owner.place)

    return router


async def _store(
    pet: Companion, owner: Owner, name: str, content: str | bytes, response: Response
) -> AddedDocument:
    stored = await pet.documents.add(name, content, user=owner.user, place=owner.place)
    response.status_code = 201 if stored.action == "added" else 200
    return AddedDocument(**asdict(stored.document), action=stored.action)


router = APIRouter()
router.include_router(_router("/api/users/{user}/knowledge", _person, _person))
router.include_router(_router("/api/knowledge", _shared, _shared_for_writing))
