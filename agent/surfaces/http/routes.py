"""Make routers that handle errors, ids and query parameters alike.

The application adds their routes directly: FastAPI would rebuild each included route at the first request,
which would take 0.3 s longer.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from agent.surfaces.http.authentication import Authenticated
from agent.surfaces.http.errors import ApiError, ErrorBody

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "What is wrong with the request"},
    "5XX": {"model": ErrorBody, "description": "What the server cannot do now"},
}


async def refuse_unknown_query(request: Request, _: Authenticated) -> None:
    """Raise ApiError for an unknown query parameter, if the caller is authenticated."""
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


def api_routes(prefix: str = "", *, tag: str, any_query: bool = False) -> APIRouter:
    """Return a router whose operations are named after their functions. `any_query`: unknown parameters are
    ignored, as OpenAI's API does."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        responses=ERRORS,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[] if any_query else [Depends(refuse_unknown_query)],
    )
