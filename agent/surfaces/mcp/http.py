"""Serve MCP over HTTP, with the keys of the HTTP API.

There are no sessions: each request sends its key. So a revoked key is refused at once, and any of several
processes may answer.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.companion import Companion
from agent.surfaces.http.application import secure
from agent.surfaces.http.authentication import LOOPBACK_NAMES, authenticate
from agent.surfaces.http.identity import Caller
from agent.surfaces.http.limits import MAX_BODY
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity

PATH = "/mcp"
ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::", "[::]"})

_identity: ContextVar[Identity] = ContextVar("identity")


def app(pet: Companion, *, host: str = "127.0.0.1", loopback: bool, names: Sequence[str] = ()) -> Starlette:
    """Return an ASGI application over an open companion. `host` is its address and `names` are its other
    names. With `loopback` no key is needed until the first one is created."""
    server = MemoryServer(pet, _identity.get)
    server.middleware.append(_act_for_caller)
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        transport_security=allowed_names(host, loopback, names),
        max_request_body_size=MAX_BODY,
    )
    sessions = server.session_manager
    routes = [Route(PATH, Authenticated(sessions.handle_request), methods=["POST"])]
    made = Starlette(routes=routes, lifespan=lambda _: sessions.run())
    made.router.redirect_slashes = False
    secure(made, pet, pet.settings, loopback=loopback)
    return made


@dataclass(frozen=True)
class Authenticated:
    """Authenticates a request and passes it on."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        request.state.caller = await authenticate(request)
        await self.app(scope, receive, send)


async def _act_for_caller(ctx: ServerRequestContext[Any, Request], call_next: CallNext) -> HandlerResult:
    """Make the tools act for the caller, in private. This is MCP middleware."""
    assert ctx.request is not None, "every message comes over HTTP"
    caller: Caller = ctx.request.state.caller
    _identity.set(Identity(caller.user, operator=caller.key is None))
    return await call_next(ctx)


def allowed_names(host: str, loopback: bool, names: Sequence[str]) -> TransportSecuritySettings:
    """Return which `Host` and `Origin` headers to accept, against DNS rebinding. A server on all addresses
    without `names` accepts any. That is safe because it always needs a key, which a foreign page does not
    have."""
    names_served = [*names, *([] if host in ALL_ADDRESSES else [host]), *(LOOPBACK_NAMES if loopback else ())]
    bracketed = sorted({f"[{name}]" if ":" in name and "[" not in name else name for name in names_served})
    hosts = [pattern for name in bracketed for pattern in (name, f"{name}:*")]
    origins = [f"{scheme}://{pattern}" for scheme in ("http", "https") for pattern in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts), allowed_hosts=hosts, allowed_origins=origins
    )
