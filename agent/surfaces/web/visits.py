"""Controls access to the pages. Traces show what everybody said, so they need an admin's key: browsers enter
it in a form, which sets a cookie; other clients send it as a bearer token. Keys are checked as in the HTTP
API: until the first key is created, a server that only this machine can reach needs none."""

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import Request
from starlette.responses import Response

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticator, address_of
from agent.surfaces.http.errors import ApiError

COOKIE = "hachi_traces"
VISIT = timedelta(hours=12)
"""How long a cookie is valid."""
MAX_VISITS = 1_000
"""How many visits may be open. Beyond that the oldest ends."""


class NotAdmitted(Exception):
    def __init__(self, status: int, message: str, *, form: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.form = form
        """Whether a key would help."""


@dataclass(frozen=True, slots=True)
class _Visit:
    key: str
    """Checked with every request: a revoked key ends the visit."""
    until: datetime


class Visits:
    def __init__(self, pet: Companion, *, loopback: bool) -> None:
        self._authenticator = Authenticator(pet, per_minute=0, loopback=loopback)
        self._clock = pet.clock
        self._visits: OrderedDict[str, _Visit] = OrderedDict()
        """By the digest of the cookie."""

    async def admit(self, request: Request) -> None:
        """Admit the request's visitor. Raises NotAdmitted."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        visit = self._visit(request)
        if scheme.lower() == "bearer":
            await self._check(request, given.strip())
        else:
            await self._check(request, visit.key if visit else None)

    async def begin(self, key: str, request: Request, response: Response) -> None:
        """Set a cookie for a visitor with an admin's key. Raises NotAdmitted."""
        await self._check(request, key.strip())
        cookie = secrets.token_urlsafe(32)
        self._visits[_digest(cookie)] = _Visit(key.strip(), self._clock() + VISIT)
        if len(self._visits) > MAX_VISITS:
            self._visits.popitem(last=False)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(VISIT.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def end(self, request: Request, response: Response) -> None:
        self._visits.pop(_digest(request.cookies.get(COOKIE, "")), None)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")

    def _visit(self, request: Request) -> _Visit | None:
        digest = _digest(request.cookies.get(COOKIE, ""))
        visit = self._visits.get(digest)
        if visit is not None and visit.until <= self._clock():
            del self._visits[digest]
            return None
        return visit

    async def _check(self, request: Request, secret: str | None) -> None:
        try:
            host, address = request.headers.get("host", ""), address_of(request.scope)
            key = await self._authenticator.authenticate(secret or "", host, address)
        except ApiError as error:
            message = "Traces show what everybody said: an admin's key opens them."
            if secret or error.status != 401:
                message = str(error)
            raise NotAdmitted(error.status, message, form=error.status == 401) from error
        if key is not None and not key.admin:
            message = "this is no admin's key; `hachi keys create NAME --service --admin` makes one"
            raise NotAdmitted(403, message, form=True)


async def require_visit(request: Request) -> None:
    visits: Visits = request.app.state.visits
    await visits.admit(request)


def require_own_page(request: Request) -> None:
    """Protect a route that changes something: the browser must say that our own page sent the form. Raises
    NotAdmitted."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = site in (None, "", "same-origin", "none")
    if origin is not None:
        own = own and origin.partition("://")[2] == request.headers.get("host")
    if not own:
        raise NotAdmitted(403, "This was sent from another site, and is not done.")


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
