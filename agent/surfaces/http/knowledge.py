"""The documents that are looked things up in: a person's own, a place's, and everybody's. They are handed
over whole; a path in a request would be read from the server's own disk."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from agent.companion import Companion
from agent.services.arguments import owner_of_documents, place_of
from agent.surfaces.http.identity import Asking, Pet, only_admins
from agent.surfaces.http.people import Person
from agent.surfaces.http.refusals import Refusal
from agent.types import writable
from memory.audience import GLOBAL, Audience, Place

LONGEST_PLACE = 400
"""Characters of the name of a place."""

Json = dict[str, Any]

EXAMPLE: Json = {
    "id": "7b0f3c3e-9a1e-4f0e-8f56-4f8d0e0f2a11",
    "owner": "user:mickael",
    "path": "travel.md",
    "title": "Travel",
    "added_at": "2026-11-21T09:30:00Z",
    "chunks": 2,
    "action": "added",
}


class NewDocument(BaseModel):
    """A document in words."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "travel.md", "text": "# Travel\n\nThe office pays for train tickets."}]
        }
    )

    name: Annotated[str, Field(min_length=1, max_length=200, description="its ending says how it is read")]
    text: Annotated[str, Field(min_length=1, pattern=r"\S")]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Whose documents: a person's, a place's, or everybody's where it is neither's."""

    user: str | None = None
    place: Place | None = None

    @property
    def audience(self) -> Audience:
        """Who may read there: everybody's documents are on each shelf."""
        if self.user is None and self.place is None:
            return Audience(frozenset({GLOBAL}))
        return Audience.of(self.user or "", self.place)

    async def put(self, pet: Companion, name: str, content: str | bytes, response: Response) -> Json:
        taken = await pet.add_document(name, content, user=self.user, place=self.place)
        response.status_code = 201 if taken.action == "added" else 200
        return asdict(taken.document) | {"action": taken.action}

    async def take_away(self, pet: Companion, id: str) -> None:
        """Only what is its own. Raises Refusal."""
        owner = owner_of_documents(self.user, self.place)
        there = await pet.components.documents.documents(self.audience)
        if not any(document.id == id and document.owner == owner for document in there):
            raise Refusal(404, "document_not_found", "there is no such document", type="not_found_error")
        await pet.remove_knowledge(id, user=self.user, place=self.place)


async def _persons(user: Person) -> Shelf:
    return Shelf(user=user)


async def _shared(
    caller: Asking,
    place: Annotated[
        str | None,
        Query(max_length=LONGEST_PLACE, description="unset is everybody's", examples=["acme/general"]),
    ] = None,
) -> Shelf:
    """A place's documents are for a service's key: nobody else proves who may be there. Raises Refusal, and
    BadInput where it is no place."""
    if place is None:
        return Shelf()
    if caller.user is not None or (caller.key is not None and caller.key.kind == "user"):
        message = "a place's documents need a service's key, and a request that names no user"
        raise Refusal(403, "forbidden", message, type="permission_error")
    owner_of_documents(None, where := place_of(place))
    return Shelf(place=where)


async def _shared_to_change(shelf: Annotated[Shelf, Depends(_shared)], caller: Asking) -> Shelf:
    """What everybody reads is changed by who runs it. Raises Refusal."""
    if shelf.place is None:
        await only_admins(caller)
    return shelf


def _router(prefix: str, reading: Callable[..., Any], changing: Callable[..., Any]) -> APIRouter:
    """The same for every shelf."""
    made = APIRouter(prefix=prefix, tags=["documents"])
    Read = Annotated[Shelf, Depends(reading)]
    Change = Annotated[Shelf, Depends(changing)]
    answers: dict[int | str, Json] = {
        201: {"content": {"application/json": {"example": EXAMPLE}}, "description": "Added"},
        200: {"description": "There under that name already: replaced, or unchanged"},
    }

    @made.get("")
    async def documents(shelf: Read, pet: Pet) -> list[Json]:
        """What may be looked things up in there, everybody's too, by name."""
        return [asdict(document) for document in await pet.components.documents.documents(shelf.audience)]

    @made.get("/search")
    async def search(
        shelf: Read,
        pet: Pet,
        query: Annotated[
            str, Query(min_length=1, max_length=2_000, examples=["who pays for train tickets?"])
        ],
        limit: Annotated[int, Query(ge=1, le=50)] = 5,
    ) -> list[Json]:
        """The passages that bear on the query, best first."""
        found = await pet.components.documents.search(writable(query), shelf.audience, limit)
        return [asdict(chunk) for chunk in found]

    @made.post("", status_code=201, responses=answers)
    async def add(shelf: Change, given: NewDocument, pet: Pet, response: Response) -> Json:
        """Add a document in words, or replace the one of that name."""
        return await shelf.put(pet, given.name, given.text, response)

    @made.put("/files/{name}", status_code=201, responses=answers, openapi_extra=_FILE)
    async def put(shelf: Change, name: str, request: Request, pet: Pet, response: Response) -> Json:
        """Add a file, which is the body as it is, or replace the one of that name."""
        return await shelf.put(pet, name, await request.body(), response)

    @made.delete("/{id}", status_code=204)
    async def remove(shelf: Change, id: Annotated[str, Path(pattern="^[0-9a-f-]{36}$")], pet: Pet) -> None:
        """Take away a document of their own, by its id."""
        await shelf.take_away(pet, id)

    return made


_FILE: Json = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""Any kind of body, and a method that a page elsewhere may not make a browser send."""

router = APIRouter()
router.include_router(_router("/api/users/{user}/knowledge", _persons, _persons))
router.include_router(_router("/api/knowledge", _shared, _shared_to_change))
