"""The pages of traces, put together: an ASGI application over a companion that is open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files
from urllib.parse import parse_qs
from uuid import uuid4

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.companion import Companion
from agent.errors import FAULTS, BadInput
from agent.surfaces.http.limits import RequestLimits
from agent.surfaces.web import comparison, listing, trace
from agent.surfaces.web.entrance import Entrance, NotLetIn, admitted, from_our_own_page
from agent.surfaces.web.rendering import page
from memory.errors import NotFound

log = logging.getLogger("hachi.traces.page")

LONGEST = 10_000
"""Bytes of a body: the form that takes a key is all there is."""
SECONDS = 60.0
"""For which a browser may take nothing of an answer."""
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer. A form that is sent with no referrer at all would say no origin either."""


def app(pet: Companion, *, loopback: bool = False, stopping: Callable[[], bool] = lambda: False) -> FastAPI:
    """Over a companion that is open, and stays so for as long as this is served. With `loopback`, for a
    server that only this machine can reach, nobody needs a key until the first one is made. `stopping` tells
    lists that go on that the server ends."""
    made = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    made.state.pet, made.state.traces, made.state.clock = pet, pet.traces, pet.clock
    made.state.stopping, made.state.making = stopping, asyncio.Lock()
    made.state.entrance = Entrance(pet.services.keys, pet.clock, loopback=loopback)
    for part in (listing, trace, comparison):
        made.include_router(part.router, dependencies=[Depends(admitted)])
    _add_entrance(made)
    _add_static(made)
    _add_refusals(made)
    made.middleware("http")(_with_headers)
    made.add_middleware(RequestLimits, max_body=LONGEST, timeout=SECONDS)
    return made


async def _with_headers(request: Request, answered: Callable[[Request], Awaitable[Response]]) -> Response:
    request.state.guarded = await request.app.state.entrance.guarded()
    try:
        response = await answered(request)
    except Exception as error:
        id = f"err_{uuid4().hex[:12]}"
        log.error("%s: something broke inside", id, exc_info=error)
        response = _refused(request, 500, f"Something broke inside; the log has it as {id}.")
    for name, value in HEADERS.items():
        response.headers[name] = value
    return response


def _add_entrance(app: FastAPI) -> None:
    entrance: Entrance = app.state.entrance

    @app.post("/enter", dependencies=[Depends(from_our_own_page)])
    async def enter(request: Request) -> Response:
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        asked_for = form.get("to", ["/"])[0]
        here = asked_for.startswith("/") and asked_for[1:2] not in ("/", "\\") and asked_for.isprintable()
        response = RedirectResponse(asked_for if here else "/", 303)
        await entrance.enter(form.get("key", [""])[0], request, response)
        return response

    @app.post("/leave", dependencies=[Depends(from_our_own_page)])
    async def leave(request: Request) -> Response:
        response = RedirectResponse("/", 303)
        entrance.leave(request, response)
        return response


def _add_static(app: FastAPI) -> None:
    """What pages need to look as they do; it tells nothing, and anybody may have it."""
    folder = files("agent.surfaces.web") / "static"
    kept = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in kept:
            raise HTTPException(404)
        return Response(kept[name], media_type=KINDS[name.rpartition(".")[2]])


def _add_refusals(app: FastAPI) -> None:
    """Everything that is no answer, as a page."""

    @app.exception_handler(NotLetIn)
    async def not_let_in(request: Request, error: NotLetIn) -> HTMLResponse:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        back = wanted if request.method == "GET" and request.url.path != "/live" else "/"
        values = {"wrong": str(error), "back": back, "form": error.form, "leaving": False}
        return page(request, "enter.html", status=error.status, **values)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> HTMLResponse:
        said = {404: "There is nothing at this address.", 405: "This address does not take that method."}
        return _refused(request, error.status_code, said.get(error.status_code, "This cannot be read."))

    async def fault(request: Request, error: Exception) -> HTMLResponse:
        status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, BadInput) else 503
        if status == 503:
            log.warning("%s", error)
        return _refused(request, status, str(error))

    for kind in FAULTS:
        app.add_exception_handler(kind, fault)


def _refused(request: Request, status: int, message: str) -> HTMLResponse:
    return page(request, "refused.html", status=status, code=status, message=message)
