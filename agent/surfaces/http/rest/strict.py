"""Refuses what a request holds and nobody reads: fields of a body, and parameters of an address."""

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from agent.surfaces.http.authentication import Authenticated
from agent.surfaces.http.errors import ApiError


class Strict(BaseModel):
    """A body without other fields."""

    model_config = ConfigDict(extra="forbid")


async def known_query(request: Request, _: Authenticated) -> None:
    """Raise ApiError for a parameter that the address does not have, if the caller may ask at all."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    known = list(dict.fromkeys(_query_of(route.dependant)))
    for name in request.query_params:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "this address takes none"
            raise ApiError(400, "unknown_parameter", f"{name[:80]}: there is no such parameter; {there}")


def _query_of(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_of(inner)
