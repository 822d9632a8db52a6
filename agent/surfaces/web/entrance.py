"""Who may look. Traces show what everybody said, so it takes an admin's key: in a browser by a form, which
leaves a cookie, elsewhere as a bearer's token. While no key was ever made, a server that only this machine
can reach shows them to whoever is on it.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import Request
from starlette.responses import Response

from agent.surfaces.http.authentication import LOOPBACK_NAMES
from memory.sql.keys import Keys

COOKIE = "hachi_traces"
STAYS = timedelta(hours=12)
"""How long somebody who has shown a key is let in without showing it again."""
MOST = 1_000
"""People who are let in at a time; beyond them the first must show their key again."""


class NotLetIn(Exception):
    """Whoever asks has to show a key, or may not ask at all."""

    def __init__(self, status: int, message: str, *, form: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.form = form
        """Whether a key would help."""


@dataclass(frozen=True, slots=True)
class _Visit:
    key: str
    """Shown once, and looked up with every request: a key that is revoked lets nobody in from then on."""
    until: datetime


class Entrance:
    def __init__(self, keys: Keys, clock: Callable[[], datetime], *, loopback: bool) -> None:
        self._keys = keys
        self._clock = clock
        self._loopback = loopback
        self._visits: OrderedDict[str, _Visit] = OrderedDict()
        """By the digest of the cookie."""

    async def admit(self, request: Request) -> None:
        """Raises NotLetIn."""
        if self._loopback and not await self._keys.exist():
            if (
                host_of(request) not in LOOPBACK_NAMES
            ):  # a page in a browser here that had its own name point to us
                raise NotLetIn(
                    403, "there is no key yet, so only localhost may be asked; `hachi keys create`"
                )
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        visit = self._visit(request)
        if scheme.lower() == "bearer":
            await self._check(given.strip())
        elif visit is not None:
            await self._check(visit.key)
        else:
            raise NotLetIn(401, "Traces show what everybody said: an admin's key opens them.", form=True)

    async def guarded(self) -> bool:
        return not self._loopback or await self._keys.exist()

    async def enter(self, key: str, request: Request, response: Response) -> None:
        """Leaves a cookie with who shows a key. Raises NotLetIn."""
        key = key.strip()
        await self._check(key)
        cookie = secrets.token_urlsafe(32)
        self._visits[_digest(cookie)] = _Visit(key, self._clock() + STAYS)
        if len(self._visits) > MOST:
            self._visits.popitem(last=False)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(STAYS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def leave(self, request: Request, response: Response) -> None:
        self._visits.pop(_digest(request.cookies.get(COOKIE, "")), None)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")

    def _visit(self, request: Request) -> _Visit | None:
        digest = _digest(request.cookies.get(COOKIE, ""))
        visit = self._visits.get(digest)
        if visit is not None and visit.until <= self._clock():
            del self._visits[digest]
            return None
        return visit

    async def _check(self, secret: str) -> None:
        key = await self._keys.check(secret, self._clock()) if secret else None
        if key is None:
            raise NotLetIn(401, "There is no such key, or it was revoked.", form=True)
        if not key.admin:
            raise NotLetIn(
                403,
                "This is no admin's key: `hachi keys create NAME --service --admin` makes one.",
                form=True,
            )


async def admitted(request: Request) -> None:
    entrance: Entrance = request.app.state.entrance
    await entrance.admit(request)


def from_our_own_page(request: Request) -> None:
    """Of what changes something. A browser says from which site a form was sent. Raises NotLetIn."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = site in ("same-origin", "none") if site else True
    if origin is not None:
        ours = ours and origin.partition("://")[2] == request.headers.get("host")
    if not ours:
        raise NotLetIn(403, "This was sent from another site, and is not done.")


def host_of(request: Request) -> str:
    """The name by which the server was asked, without the port."""
    host = request.headers.get("host", "").lower()
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
