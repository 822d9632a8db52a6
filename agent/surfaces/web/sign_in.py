"""Admit visitors of the pages, and decide whose pages they see.

Browsers enter a key in a form, which sets a cookie; other clients send it as a bearer token. Keys are checked
as in the HTTP API: until the first key is created, a server that only this machine can reach needs none.

A cookie is a token that names its key and is signed with the key's digest, which the database stores. So
every process accepts it, also after a restart, until the key is revoked. The token does not contain the key.
A signed link (`agent.surfaces.links`) opens a person's own pages without a key, for an hour. Opening it shows
a button; only pressing that uses up the link and sets the cookie.

The console shows one person their own data. The server of traces shows what everybody said, so it needs an
admin's key.
"""

from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta, tzinfo

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from agent.companion import Companion
from agent.surfaces.http.authentication import Authenticator, refuse_other_site
from agent.surfaces.http.errors import ApiError
from agent.surfaces.http.identity import Caller
from agent.surfaces.links import (
    PageLink,
    read_link,
    signed,
    signed_by_person,
    signed_for,
    unverified,
    use_link,
    verified,
)
from memory.sql.keys import Key, digest

COOKIE = "hachi_traces"
VISIT, LINK_VISIT = timedelta(hours=12), timedelta(hours=1)
"""How long a cookie is valid that was set by a key, and by a link."""
ZONE: ContextVar[tzinfo | None] = ContextVar("zone", default=None)
"""The visitor's time zone; None if their profile has none."""
_VISITOR = "hachi.visitor"
"""Where the scope of a request stores the visitor, or the reason for refusing them."""


class OtherKey(ApiError):
    """Raised if another key, or a user's name with it, would open the page."""


@dataclass(frozen=True, slots=True)
class Visitor:
    user: str | None
    """The person whose memory is shown; None if only traces are."""
    admin: bool
    """Whether the traces of all people are shown."""


class Visits:
    def __init__(self, pet: Companion, *, loopback: bool, person: str | None) -> None:
        """`person` is the visitor of the console while no key is needed; None if only traces are served."""
        self._pet, self._person = pet, person
        self._authenticator = Authenticator(pet, per_minute=pet.settings.http_rate, loopback=loopback)
        self._keys = pet.admin.keys
        self._clock = pet.clock

    async def authorize(self, scope: Scope) -> str:
        """Return the name under which the bytes of a request's body are counted. Raises ApiError."""
        return (await self.admit(scope)).user or ""

    async def admit(self, scope: Scope) -> Visitor:
        """Return the request's visitor. Raises ApiError. A second call for the same request has the same
        result."""
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
            return self._visitor(await self._authenticator.caller(request.scope))
        if visit := await self._visit(request.cookies.get(COOKIE, "")):
            key, name = visit
            caller = self._acting(key, name)
            return self._visitor(caller) if key else Visitor(name, admin=False)
        return self._visitor(self._acting(await self._checked(request, "")))

    def _acting(self, key: Key | None, name: str = "") -> Caller:
        """Return whom a visit with this key acts for. `name` is the user that a service's key names. Raises
        ApiError."""
        try:
            return self._authenticator.counted(key, Headers(), "" if key and key.user else name)
        except ApiError as error:
            if error.status != 403:
                raise
            raise OtherKey(403, "forbidden", str(error)) from error

    async def begin(self, secret: str, name: str, request: Request, response: Response) -> None:
        """Set a cookie for a visitor with this key. Raises ApiError."""
        key = await self._checked(request, secret)
        self._visitor(self._acting(key, name))
        if key is not None:
            claims = {"who": name, "key": key.id}
            token = signed(claims, digest(secret), COOKIE, self._clock() + VISIT)
            self._keep(token, VISIT, request, response)

    async def linked(self, token: str) -> PageLink:
        """Return the content of a link. Raises ApiError if it is not valid."""
        link = await read_link(self._pet, token) if self._person else None
        if link is None:
            message = "This link has expired; ask for another." if token else "A key opens this page."
            raise ApiError(401, "invalid_link", message)
        return link

    async def follow(self, token: str, request: Request) -> Response:
        """Use up a link: redirect to its page, and set a cookie for its person. Raises ApiError."""
        link = await self.linked(token)
        response = RedirectResponse(link.page, 303)
        if await self.visiting(request) == link.user:  # pressed twice, or already signed in
            return response
        if not await use_link(self._pet, link):
            raise ApiError(401, "invalid_link", "This link has been used; ask for another.")
        cookie = await signed_for(self._pet, link.user, COOKIE, LINK_VISIT)
        self._keep(cookie, LINK_VISIT, request, response)
        return response

    async def name_of(self, user: str) -> str:
        """Return the name to show for a person."""
        return (await self._pet.components.transcript.speakers.names([user])).get(user, user)

    async def visiting(self, request: Request) -> str | None:
        """Return whose pages the browser may see without a link; None for nobody's."""
        with suppress(ApiError):
            return (await self.admit(request.scope)).user
        return None

    def _keep(self, token: str, lasting: timedelta, request: Request, response: Response) -> None:
        """Set the cookie. Browsers also send it when a link on another site is followed; forms are accepted
        only from pages of this site (`refuse_other_site`). `x-forwarded-proto` can be forged, but that only
        keeps the cookie from the forger's own plain connections."""
        age, console = int(lasting.total_seconds()), self._pet.settings.console_url or ""
        forwarded = request.headers.get("x-forwarded-proto", "")
        secure = any(one.startswith("https") for one in (request.url.scheme, forwarded, console))
        response.set_cookie(COOKIE, token, max_age=age, httponly=True, samesite="lax", secure=secure)

    async def _visit(self, cookie: str) -> tuple[Key | None, str] | None:
        """Return the key and the name that a cookie was set for; the key is None for a link. None if the
        cookie is not valid (any more)."""
        claims = unverified(cookie)
        if "key" not in claims:
            visit = await signed_by_person(self._pet, cookie, COOKIE) if self._person else None
            return (None, visit["who"]) if visit else None
        active = await self._keys.active(str(claims["key"]))
        valid = active and verified(cookie, active[1], COOKIE, self._clock())
        return (active[0], str(claims["who"])) if active and valid else None

    async def _checked(self, request: Request, secret: str) -> Key | None:
        try:
            return await self._authenticator.key(secret, request.scope)
        except ApiError as error:
            if secret or error.status != 401:
                raise
            message = "A key opens this page." if self._person else "Traces need an admin's key."
            raise ApiError(401, "invalid_api_key", message) from error

    def _visitor(self, caller: Caller) -> Visitor:
        if self._person is None:
            if not caller.admin:
                message = "this is no admin's key; `hachi keys create NAME --service --admin` makes one"
                raise OtherKey(403, "forbidden", message)
            return Visitor(None, True)
        if caller.key is None:
            return Visitor(self._person, True)
        if caller.user is None:
            raise OtherKey(403, "forbidden", "This key speaks for many people; name one of them.")
        return Visitor(caller.user, caller.admin)


async def require_visit(request: Request) -> None:
    refuse_other_site(request.scope)
    visits: Visits = request.app.state.visits
    request.state.visitor = visitor = await visits.admit(request.scope)
    request.state.name = visitor.user
    if visitor.user:
        pet: Companion = request.app.state.pet
        ZONE.set(await pet.people.zone(user=visitor.user))
        request.state.name = await visits.name_of(visitor.user)


def visitor_of(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor


async def require_same_site(request: Request) -> None:
    refuse_other_site(request.scope)
