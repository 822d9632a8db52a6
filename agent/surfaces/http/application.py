"""Build the ASGI application of the HTTP API, and the page that documents it."""

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse

from agent import __version__
from agent.companion import Companion
from agent.settings import Settings
from agent.surfaces.http import errors, limits, monitoring
from agent.surfaces.http.audit import Audit
from agent.surfaces.http.authentication import Authenticator
from agent.surfaces.http.limits import RequestLimits
from agent.surfaces.http.openai_api import chat, models, responses
from agent.surfaces.http.rest import documents, memories, people, session_memories

DESCRIPTION = """A companion that remembers.

`POST /v1/chat/completions` is OpenAI's API: clients for it work, with this server as their base URL and one
of its keys. Errors are `{"error": {"message", "type", "param", "code"}}` everywhere.
"""


def app(pet: Companion, settings: Settings, *, loopback: bool = False, console: bool = False) -> FastAPI:
    """Return an ASGI application over a companion, which must stay open while it is served.

    `loopback`: only this machine can reach the server, so it needs no key until the first one is created.
    `console`: the console is served too, so answers may link to a person's pages.
    """

    made = FastAPI(
        title="Hachi",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # FastAPI's page would load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    made.state.metrics, made.state.console = monitoring.Metrics(), console
    parts = (chat.router, responses.router, models.router, monitoring.router, _docs)
    rest = (session_memories.router, memories.router, people.router, documents.router)
    for part in (*parts, *rest, documents.of_places):
        made.router.routes += part.routes
    made.add_middleware(Audit)
    secure(made, pet, settings, loopback=loopback)
    if origins := settings.http_cors.split():
        made.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["retry-after"],
        )
    return made


def secure(app: Starlette, pet: Companion, settings: Settings, *, loopback: bool) -> None:
    """Add authentication, error responses and limits to an application; also used by MCP over HTTP."""
    app.state.pet = pet
    authenticator = Authenticator(pet, per_minute=settings.http_rate, loopback=loopback)
    app.state.authenticator = authenticator
    errors.add_handlers(app)
    app.add_middleware(
        RequestLimits,
        authorize=authenticator.authorize,
        max_body=limits.MAX_BODY,
    )


_docs = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Hachi's API</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
code{{font-size:.95em}} dt{{margin-top:1rem}} dd{{margin:0 0 0 1.5rem}}</style>
<h1>Hachi's API</h1><p><a href='/'>The console</a> is for people;
<a href='/openapi.json'>/openapi.json</a> has every field.</p><dl>{entries}</dl></html>"""
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}


@_docs.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Show the documentation of the API. The page loads nothing from other servers."""
    entries = [
        _entry(path, method, operation)
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    return HTMLResponse(_PAGE.format(entries="".join(entries)), headers=_HEADERS)


def _entry(path: str, method: str, operation: dict[str, Any]) -> str:
    given = ", ".join(escape(parameter["name"]) for parameter in operation.get("parameters", ()))
    says = escape(" ".join(operation.get("description", "").split()))
    parameters = f"<br><small>{given}</small>" if given else ""
    return f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{says}{parameters}</dd>"
