"""MCP over HTTP, with the keys and the authentication of the HTTP API.

There are no sessions: each request shows its key and is answered for whom that key may act. So a revoked key
is refused at once, no caller can reach another's session, and any of several processes may answer.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.companion import Companion
from agent.settings import Settings
from agent.surfaces.http.application import secure
from agent.surfaces.http.authentication import LOOPBACK_NAMES, Caller, authenticate
from agent.surfaces.mcp.server import MemoryServer
from agent.surfaces.mcp.tools import Identity

PATH = "/mcp"
ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::", "[::]"})

_identity: ContextVar[Identity] = ContextVar("identity")


def app(
    pet: Companion, settings: Settings, *, host: str = "127.0.0.1", loopback: bool, names: Sequence[str] = ()
) -> Starlette:
    """An ASGI application over a companion that is open. `host` is the address it listens on and `names` what
    else it is called; with `loopback` no key is needed until the first one is made."""
    server = MemoryServer(pet, _identity.get)
    server.middleware.append(_act_for_caller)
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        transport_security=allowed_names(host, loopback, names),
        max_request_body_size=settings.http_max_body,
    )
    sessions = server.session_manager
    made = Starlette(
        routes=[Route(PATH, Authenticated(sessions), methods=["POST"])], lifespan=lambda _: sessions.run()
    )
    made.router.redirect_slashes = False
    secure(made, pet, settings, loopback=loopback)
    return made


class Authenticated:
    """ASGI endpoint that authenticates a request and hands it to the SDK."""

    def __init__(self, sessions: StreamableHTTPSessionManager) -> None:
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        request.state.caller = await authenticate(request)
        await self._sessions.handle_request(scope, receive, send)


async def _act_for_caller(ctx: ServerRequestContext[Any, Request], call_next: CallNext) -> HandlerResult:
    """MCP middleware: the tools act for the caller of this request, in private."""
    assert ctx.request is not None, "every message comes over HTTP"
    caller: Caller = ctx.request.state.caller
    _identity.set(Identity(caller.user, operator=caller.key is None))
    return await call_next(ctx)


def allowed_names(host: str, loopback: bool, names: Sequence[str]) -> TransportSecuritySettings:
    """The `Host` and `Origin` headers to accept, against DNS rebinding: a page whose own name was pointed at
    this machine is refused. A server on all addresses without `names` does not know its names and accepts
    any; there a key is always needed, which such a page does not have."""
    known = [*names, *([] if host in ALL_ADDRESSES else [host]), *(LOOPBACK_NAMES if loopback else ())]
    bracketed = sorted({f"[{name}]" if ":" in name and "[" not in name else name for name in known})
    hosts = [pattern for name in bracketed for pattern in (name, f"{name}:*")]
    origins = [f"{scheme}://{pattern}" for scheme in ("http", "https") for pattern in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts), allowed_hosts=hosts, allowed_origins=origins
    )
