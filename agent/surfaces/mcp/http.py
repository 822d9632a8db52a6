"""Over HTTP, for whoever has a key: the same doors as those of the HTTP API.

There are no sessions: each request shows its key, and is answered for whom that key may act. So a key that
was revoked opens nothing from then on, there is nothing of one caller's that another could get hold of, and
any of several processes may answer.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent.companion import Companion
from agent.settings import Settings
from agent.surfaces.http import refusals
from agent.surfaces.http.guard import Guard
from agent.surfaces.http.identity import OURSELVES, Caller, Door, bearer, identify
from agent.surfaces.http.rates import Rates
from agent.surfaces.mcp import server
from agent.surfaces.mcp.reader import Asker

PATH = "/mcp"
EVERYWHERE = frozenset({"", "0.0.0.0", "::", "[::]"})
"""Hosts that are all of a machine's addresses, and the name of none."""


def app(
    pet: Companion, settings: Settings, *, host: str = "127.0.0.1", loopback: bool, names: Sequence[str] = ()
) -> FastAPI:
    """An ASGI application over a companion that is open. `host` is where it listens and `names` what else it
    is called; with `loopback` nobody needs a key until the first one is made."""
    sessions = StreamableHTTPSessionManager(
        server.memory_server(pet, _asker),
        json_response=True,
        stateless=True,
        security_settings=checks(host, loopback, names),
        max_request_body_size=settings.http_max_body,
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    made = FastAPI(
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    made.state.door = Door(pet.services.keys, pet, loopback=loopback, rates=Rates(settings.http_rate))
    made.router.routes.append(Route(PATH, Admitting(sessions), methods=["POST"]))
    refusals.add_to(made)
    made.add_middleware(Guard, longest=settings.http_max_body, seconds=settings.http_timeout)
    return made


class Admitting:
    """Lets in who has a key, and notes for whom."""

    def __init__(self, sessions: StreamableHTTPSessionManager) -> None:
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        request.state.caller = await identify(request, await bearer(request))
        await self._sessions.handle_request(scope, receive, send)


def _asker(request: server.Request) -> Asker:
    """In private: what is said over HTTP is said in no place."""
    assert request.request is not None, "nothing comes here but over HTTP"
    caller: Caller = request.request.state.caller
    return Asker(caller.user, in_full=caller.key is None)


def checks(host: str, loopback: bool, names: Sequence[str]) -> TransportSecuritySettings:
    """By which names it may be asked, and from pages of which origin: a page in somebody's browser that had
    its own name point to this machine is refused. Where it listens on every address and no name is given,
    its names are not known; there a key is needed always, which such a page has not."""
    known = [*names, *([] if host in EVERYWHERE else [host]), *(OURSELVES if loopback else ())]
    written = sorted({f"[{name}]" if ":" in name and "[" not in name else name for name in known})
    hosts = [pattern for name in written for pattern in (name, f"{name}:*")]
    origins = [f"{scheme}://{pattern}" for scheme in ("http", "https") for pattern in hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts), allowed_hosts=hosts, allowed_origins=origins
    )
