"""Controls access to the pages, and tells whose they are. Browsers enter a key in a form, which sets a
cookie; other clients send it as a bearer token. Keys are checked as in the HTTP API: until the first key is
created, a server that only this machine can reach needs none.

The console shows one person what is theirs. The traces alone show what everybody said, so they need an
admin's key.
"""

import hashlib
import secrets
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from fastapi import Request
from starlette.responses import Response
from starlette.types import Scope

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticator, caller_of, refuse_other_site
from agent.surfaces.http.errors import ApiError

COOKIE = "hachi_traces"
VISIT = timedelta(hours=12)
"""How long a cookie is valid."""
ZONE: ContextVar[tzinfo | None] = ContextVar("zone", default=None)
"""The visitor's time zone, as far as their profile tells it."""
MAX_VISITS = 1_000
"""How many visits may be open. Beyond that the oldest ends."""
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


@dataclass(frozen=True, slots=True)
class _Visit:
    key: str
    """Checked with every request: a revoked key ends the visit."""
    name: str
    """Whose memory a service's key opens."""
    until: datetime


class Visits:
    def __init__(self, pet: Companion, *, loopback: bool, person: str | None) -> None:
        """`person` is who visits the console while no key is needed; None is for the traces alone."""
        self._person = person
        self._authenticator = Authenticator(pet, per_minute=pet.settings.http_rate, loopback=loopback)
        self._clock = pet.clock
        self._visits: dict[str, _Visit] = {}
        """By the digest of the cookie, oldest first."""

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
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._visitor(request, given.strip(), caller_of(None, request.headers).user or "")
        visit = self._visits.get(_digest(request))
        if visit is None or self._clock() >= visit.until:
            return await self._visitor(request, "", "")
        return await self._visitor(request, visit.key, visit.name)

    async def begin(self, key: str, name: str, request: Request, response: Response) -> None:
        """Set a cookie for a visitor with this key; `name` is for a service's. Raises ApiError."""
        await self._visitor(request, key, name)
        cookie = secrets.token_urlsafe(32)
        self._visits[_sha256(cookie)] = _Visit(key, name, self._clock() + VISIT)
        if len(self._visits) > MAX_VISITS:
            del self._visits[next(iter(self._visits))]
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(VISIT.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def end(self, request: Request, response: Response) -> None:
        self._visits.pop(_digest(request), None)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")

    async def _visitor(self, request: Request, secret: str, name: str) -> Visitor:
        try:
            key = await self._authenticator.authenticate(secret, request.scope)
        except ApiError as error:
            if secret or error.status != 401:
                raise
            message = "A key opens this page." if self._person else "Traces need an admin's key."
            raise ApiError(401, "invalid_api_key", message) from error
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


def person_of(request: Request) -> str:
    """Whose console it is."""
    return visitor_of(request).user or ""


async def require_own_page(request: Request) -> None:
    refuse_other_site(request.scope)


def _digest(request: Request) -> str:
    return _sha256(request.cookies.get(COOKIE, ""))


def _sha256(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
