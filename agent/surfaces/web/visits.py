"""Controls access to the pages. Traces show what everybody said, so they need an admin's key: browsers enter
it in a form, which sets a cookie; other clients send it as a bearer token. Keys are checked as in the HTTP
API: until the first key is created, a server that only this machine can reach needs none."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import Request
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticator, address_of
from agent.surfaces.http.errors import ApiError, forbidden

COOKIE = "hachi_traces"
VISIT = timedelta(hours=12)
"""How long a cookie is valid."""
MAX_VISITS = 1_000
"""How many visits may be open. Beyond that the oldest ends."""


class NotAdmin(ApiError):
    """The key is not an admin's."""


@dataclass(frozen=True, slots=True)
class _Visit:
    key: str
    """Checked with every request: a revoked key ends the visit."""
    until: datetime


class Visits:
    def __init__(self, pet: Companion, *, loopback: bool) -> None:
        self._authenticator = Authenticator(pet, per_minute=0, loopback=loopback)
        self._clock = pet.clock
        self._visits: dict[str, _Visit] = {}
        """By the digest of the cookie, oldest first."""

    async def admit(self, request: Request) -> None:
        """Admit the request's visitor. Raises ApiError."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            await self._check(request, given.strip())
            return
        visit = self._visits.get(_digest(request))
        open = visit is not None and self._clock() < visit.until
        await self._check(request, visit.key if visit and open else None)

    async def begin(self, key: str, request: Request, response: Response) -> None:
        """Set a cookie for a visitor with an admin's key. Raises ApiError."""
        await self._check(request, key.strip())
        cookie = secrets.token_urlsafe(32)
        self._visits[_sha256(cookie)] = _Visit(key.strip(), self._clock() + VISIT)
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

    async def _check(self, request: Request, secret: str | None) -> None:
        try:
            host, address = request.headers.get("host", ""), address_of(request.scope)
            key = await self._authenticator.authenticate(secret or "", host, address)
        except ApiError as error:
            if secret or error.status != 401:
                raise
            message = "Traces show what everybody said: an admin's key opens them."
            raise ApiError(401, "invalid_api_key", message) from error
        if key is not None and not key.admin:
            message = "this is no admin's key; `hachi keys create NAME --service --admin` makes one"
            raise NotAdmin(403, "forbidden", message)


async def require_visit(request: Request) -> None:
    visits: Visits = request.app.state.visits
    await visits.admit(request)


def require_own_page(request: Request) -> None:
    """Protect a route that changes something: the browser must say that our own page sent the form. Raises
    ApiError."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = site in (None, "", "same-origin", "none")
    if origin is not None:
        own = own and origin.partition("://")[2] == request.headers.get("host")
    if not own:
        raise forbidden("This was sent from another site, and is not done.")


def _digest(request: Request) -> str:
    return _sha256(request.cookies.get(COOKIE, ""))


def _sha256(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
