"""Controls access to the pages, and tells whose they are. Browsers enter a key in a form, which sets a
cookie; other clients send it as a bearer token. Keys are checked as in the HTTP API: until the first key is
created, a server that only this machine can reach needs none.

A cookie names its key and is signed with what the database stores of that key, its digest. So every process
on the database accepts it, also after a restart, and it ends with the key; nothing of the key is in it.

The console shows one person what is theirs. The traces alone show what everybody said, so they need an
admin's key.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from hmac import compare_digest

from fastapi import Request
from starlette.responses import Response
from starlette.types import Scope

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticator, refuse_other_site
from agent.surfaces.http.errors import ApiError
from memory.sql.keys import Key, digest

COOKIE = "hachi_traces"
VISIT = timedelta(hours=12)
"""How long a cookie is valid."""
ZONE: ContextVar[tzinfo | None] = ContextVar("zone", default=None)
"""The visitor's time zone, as far as their profile tells it."""
_VISITOR = "hachi.visitor"
"""Where the scope of a request keeps who was admitted, or why nobody was."""


class OtherKey(ApiError):
    """Another key, or a name beside it, would open the page."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whom the pages are shown to."""

    user: str | None
    """The person whose memory it is; None where only traces are shown."""
    admin: bool
    """Whether the traces of all people are shown."""


class Visits:
    def __init__(self, pet: Companion, *, loopback: bool, person: str | None) -> None:
        """`person` is who visits the console while no key is needed; None is for the traces alone."""
        self._person = person
        self._authenticator = Authenticator(pet, per_minute=pet.settings.http_rate, loopback=loopback)
        self._keys = pet.admin.keys
        self._clock = pet.clock

    async def admit(self, scope: Scope) -> Visitor:
        """Return the request's visitor. Raises ApiError. A second call for the same request says the same."""
        if _VISITOR not in scope:
            try:
                scope[_VISITOR] = await self._admit(Request(scope))
            except ApiError as error:
                scope[_VISITOR] = error
        admitted: Visitor | ApiError = scope[_VISITOR]
        if isinstance(admitted, ApiError):
            raise admitted
        return admitted

    async def _admit(self, request: Request) -> Visitor:
        if request.headers.get("authorization", "").lower().startswith("bearer "):
            caller = await self._authenticator.caller(request.scope)
            return self._visitor(caller.key, caller.user or "")
        if visit := await self._visit(request.cookies.get(COOKIE, "")):
            key, name = visit
            self._authenticator.count(key)
            return self._visitor(key, name)
        return self._visitor(await self._checked(request, ""), "")

    async def begin(self, secret: str, name: str, request: Request, response: Response) -> None:
        """Set a cookie for a visitor with this key; `name` is for a service's. Raises ApiError."""
        key = await self._checked(request, secret)
        self._visitor(key, name)
        if key is None:
            return
        until = int((self._clock() + VISIT).timestamp())
        said = f"{key.id}.{until}.{urlsafe_b64encode(name.encode()).decode()}"
        response.set_cookie(
            COOKIE,
            f"{said}.{_signature(said, digest(secret))}",
            max_age=int(VISIT.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    async def _visit(self, cookie: str) -> tuple[Key, str] | None:
        """Return the key and the name that a cookie was made for; None if it is not valid or not any more."""
        said, _, signature = cookie.rpartition(".")
        with suppress(ValueError):
            id, until, name = said.split(".")
            found = await self._keys.active(id)
            if found and float(until) > self._clock().timestamp():
                key, key_digest = found
                if compare_digest(signature, _signature(said, key_digest)):
                    return key, urlsafe_b64decode(name).decode()
        return None

    async def _checked(self, request: Request, secret: str) -> Key | None:
        try:
            return await self._authenticator.authenticate(secret, request.scope)
        except ApiError as error:
            if secret or error.status != 401:
                raise
            message = "A key opens this page." if self._person else "Traces need an admin's key."
            raise ApiError(401, "invalid_api_key", message) from error

    def _visitor(self, key: Key | None, name: str) -> Visitor:
        if self._person is None:
            if key is not None and not key.admin:
                message = "this is no admin's key; `hachi keys create NAME --service --admin` makes one"
                raise OtherKey(403, "forbidden", message)
            return Visitor(None, True)
        if key is None:
            return Visitor(self._person, True)
        user = key.user or name
        if not user:
            raise OtherKey(403, "forbidden", "This key speaks for many people; name one of them.")
        return Visitor(user, key.admin)


def _signature(said: str, key_digest: str) -> str:
    return hmac.new(key_digest.encode(), said.encode("utf-8", "replace"), "sha256").hexdigest()


async def require_visit(request: Request) -> None:
    refuse_other_site(request.scope)
    visits: Visits = request.app.state.visits
    request.state.visitor = visitor = await visits.admit(request.scope)
    if visitor.user:
        pet: Companion = request.app.state.pet
        ZONE.set(await pet.people.zone(user=visitor.user))


def visitor_of(request: Request) -> Visitor:
    """The visitor whom `require_visit` admitted."""
    visitor: Visitor = request.state.visitor
    return visitor


async def require_own_page(request: Request) -> None:
    refuse_other_site(request.scope)
