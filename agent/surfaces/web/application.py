"""Build the ASGI application of the pages: a person's console with their traces, or only traces."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.companion import Companion
from agent.errors import BadInput, HachiError
from agent.surfaces.http.errors import ApiError, without_command
from agent.surfaces.http.limits import RequestLimits
from agent.surfaces.web import memory_pages, statistics, talk, trace_list, trace_page
from agent.surfaces.web.pages import field_of, go, page, typed_in
from agent.surfaces.web.sign_in import COOKIE, OtherKey, Visits, require_same_site, require_visit
from memory.documents.files import MAX_BYTES
from memory.errors import NotFound

log = logging.getLogger("hachi.traces.page")

MAX_BODY = MAX_BYTES + 10_000
"""Maximum bytes of a body: a form with one document."""
MAX_UNKNOWN_BODY = 4_096
"""Maximum bytes of a form that are read before a key is known. That is the form for a key, or a text that was
typed before the visit expired."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # "no-referrer" would also remove the origin from forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response."""


def app(
    pet: Companion,
    *,
    person: str | None = None,
    loopback: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    docs: bool = False,
) -> FastAPI:
    """Return the pages over an open companion, which must stay open while it is served.

    With a `person` it is the console: that person's while no key is needed, then that of the key's person.
    Without one it shows only traces. `loopback`: only this machine can reach the server, so it needs no key
    until the first one is created. `stopping` returns whether the server is stopping; live lists then end.
    `docs`: the pages link to `/docs` of the HTTP API.
    """
    made = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    made.state.pet, made.state.traces, made.state.clock = pet, pet.traces, pet.clock
    made.state.stopping, made.state.test_lock = stopping, asyncio.Lock()
    visits = Visits(pet, loopback=loopback, person=person)
    made.state.visits, made.state.console = visits, person is not None
    made.state.docs = docs
    pages = (talk.router, memory_pages.router) if person is not None else (traces_only,)
    for router in (*pages, trace_list.router, statistics.router, trace_page.router, _visits):
        made.router.routes += router.routes  # added directly: see agent/surfaces/http/routes.py
    made.mount("/static", StaticFiles(packages=[("agent.surfaces.web", "static")]))  # needs no key
    handlers: dict[type[Exception], Any] = {ApiError: _refused, HTTPException: _no_page}
    for kind, handler in (handlers | {HachiError: _fault}).items():
        made.add_exception_handler(kind, handler)
    made.middleware("http")(_add_headers)
    made.add_middleware(
        RequestLimits, authorize=visits.authorize, max_body=MAX_BODY, max_unknown=MAX_UNKNOWN_BODY
    )
    return made


def beside(api: ASGIApp, pages: FastAPI) -> ASGIApp:
    """Return an application that answers the addresses of the console with `pages`, and all others with
    `api`."""
    console = {getattr(route, "path", "/").split("/")[1] for route in pages.router.routes}

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].split("/")[1:2] if scope["type"] == "http" else []  # empty for `OPTIONS *`
        await (pages if console.issuperset(first or ["*"]) else api)(scope, receive, send)

    return both


traces_only = APIRouter(dependencies=[Depends(require_visit)])


@traces_only.get("/")
async def to_the_traces() -> Response:
    return go("/traces")


_visits = APIRouter(dependencies=[Depends(require_same_site)])


@_visits.post("/enter")
async def enter(request: Request) -> Response:
    """Begin a visit, with the link or the key in the form. A key leads to the page of this site that the form
    names."""
    visits: Visits = request.app.state.visits
    if link := await field_of(request, "link"):
        return await visits.follow(link, request)
    to = await field_of(request, "to") or "/"
    same_site = to.startswith("/") and to[1:2] not in ("/", "\\") and to.isprintable()
    response = go(to if same_site else "/")
    key, name = await field_of(request, "key"), await field_of(request, "name")
    await visits.begin(key, name, request, response)
    return response


@_visits.get("/enter")
async def show_link(request: Request, link: str = "") -> Response:
    """Show whose pages a link opens, and the button that uses it up. Programs that preview links press no
    button."""
    visits: Visits = request.app.state.visits
    user = (await visits.linked(link)).user
    visitor, whose = await visits.visiting(request), await _name_and_id(visits, user)
    instead = await _name_and_id(visits, visitor) if visitor and visitor != user else None
    return page(request, "console/enter.html", link=link, whose=whose, instead=instead)


async def _name_and_id(visits: Visits, user: str) -> str:
    """Return the name, and the id if it differs, since two people may have the same name."""
    name = await visits.name_of(user)
    return name if name == user else f"{name} ({user})"


@_visits.post("/leave")
async def leave() -> Response:
    response = go("/")
    response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response


async def _add_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    try:
        response = await answer(request)
    except Exception as error:
        id = f"err_{uuid4().hex[:12]}"
        log.error("%s: internal error", id, exc_info=error)
        response = _error(request, 500, f"Internal error; the log has it as {id}.")
    response.headers.update(HEADERS)
    return response


# Every error is shown as a page.


async def _refused(request: Request, error: ApiError) -> HTMLResponse:
    """Show the refusal, with the form for a key if a key would help."""
    address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method == "GET":
        back = address if request.url.path not in ("/live", "/enter") else "/"
    else:
        back = await field_of(request, "to") or "/"
    form = error.status == 401 or isinstance(error, OtherKey)
    typed = await typed_in(request) if error.status == 401 else {}
    return _error(request, error.status, str(error), typed, back=back if form else None)


async def _no_page(request: Request, error: HTTPException) -> HTMLResponse:
    messages = {404: "There is nothing at this address.", 405: "This address does not take that method."}
    message = messages.get(error.status_code, "This cannot be read.")
    return _error(request, error.status_code, message)


async def _fault(request: Request, error: Exception) -> HTMLResponse:
    status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, BadInput) else 503
    if status == 503:
        log.warning("%s", error)
    message = without_command(str(error)) if status == 404 else str(error)
    return _error(request, status, message, await typed_in(request))


TITLES = {400: "This cannot be done", 404: "Not found", 500: "Internal error", 503: "Not now"}


def _error(
    request: Request,
    status: int,
    message: str,
    typed: Mapping[str, str] = MappingProxyType({}),
    back: str | None = None,
) -> HTMLResponse:
    """Show an error. With `back`, the page that a key leads to, it also shows the form for a key."""
    title = TITLES.get(status, "Refused") if back is None else "Log in"
    return page(request, "refused.html", status=status, title=title, message=message, typed=typed, back=back)
