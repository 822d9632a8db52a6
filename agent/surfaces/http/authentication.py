"""Authenticate callers and limit their requests.

A user's key acts for its user; a service's key names the user. Until the first key is created, a server that
only this machine can reach treats each request as one with a service's key.
"""

import logging
import math
import time
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.types import Scope

from agent.companion import Companion
from agent.surfaces.http.errors import ApiError, forbidden
from agent.surfaces.http.identity import (
    CALLED,
    CHAT_HEADER,
    NAME_HEADER,
    OWN_TASK,
    SIGNED,
    TASK_HEADER,
    TOKEN_HEADER,
    USER_HEADER,
    WHICH,
    WHO,
    Caller,
    caller_of,
)
from agent.surfaces.http.limits import RateLimiter
from memory.sql.keys import Key, Keys

log = logging.getLogger("hachi.http")

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Authenticator:
    """Resolves who acts, for every route, and limits the requests of each key and person."""

    def __init__(self, pet: Companion, *, per_minute: int, loopback: bool) -> None:
        self._pet = pet
        secret = pet.settings.forward_user_info_header_jwt_secret
        self._signed = secret.get_secret_value() if secret else ""
        self._loopback = loopback
        self._limiter = RateLimiter(per_minute)

    async def authorize(self, scope: Scope) -> str:
        """Return the name under which the bytes of a request's body are counted. Raises ApiError."""
        return (await self.caller(scope)).bucket

    async def caller(self, scope: Scope) -> Caller:
        """Return whom a request acts for, and count the request. Raises ApiError. A second call for the same
        request returns the same and does not count."""
        if _CALLER not in scope:
            headers = Headers(scope=scope)
            scheme, secret = get_authorization_scheme_param(headers.get("authorization"))
            scope[_KEY] = await self.key(secret if scheme.lower() == "bearer" else "", scope)
            scope[_CALLER] = self.counted(scope[_KEY], headers)
        caller: Caller = scope[_CALLER]
        return caller

    def counted(self, key: Key | None, headers: Headers, named: str = "") -> Caller:
        """Return whom a request with this key acts for, and count it. `named` is a person that it names
        outside its headers. Raises ApiError, also if there were too many requests."""
        caller = caller_of(key, headers, self._signed, self._pet.clock())
        caller = replace(caller, user=caller.acting_for(named))
        if wait := self._limiter.acquire(caller.bucket, time.monotonic()):
            seconds = str(math.ceil(wait))
            message = f"too many requests with this key; try again in {seconds} s"
            again = {"retry-after": seconds}
            raise ApiError(429, "rate_limit_exceeded", message, type="rate_limit_error", headers=again)
        return caller

    async def key(self, secret: str, scope: Scope) -> Key | None:
        """Return the key of a request; None if none is needed. Raises ApiError."""
        keys: Keys = self._pet.admin.keys
        if self._loopback and not await keys.exist():
            # against DNS rebinding: a foreign page's host name can resolve to this server
            if bare_host(Headers(scope=scope).get("host", "")) not in LOOPBACK_NAMES:
                raise forbidden("there is no key yet, so only localhost may be asked; `hachi keys create`")
            if is_foreign(scope):
                raise forbidden("this was sent from another site, which needs a key; `hachi keys create`")
            return None
        key = await keys.check(secret, self._pet.clock()) if secret else None
        if key is None:
            if secret:
                address = (scope.get("client") or ("an unknown address",))[0]
                log.warning("a request from %s showed a wrong key", address)
            message = "no such key" if secret else "a key is missing: Authorization: Bearer KEY"
            headers = {"www-authenticate": "Bearer"}
            raise ApiError(401, "invalid_api_key", message, type="authentication_error", headers=headers)
        return key


def is_foreign(scope: Scope) -> bool:
    """Return whether a page of another site made the browser send a request that may change something, or
    whose answer that page may read. Following a link from there does not count.

    A browser says which site it is in `Sec-Fetch-Site`. Older browsers send only the origin, which seems
    foreign behind a proxy that changes the host name. Programs other than browsers send neither header.
    """
    headers = Headers(scope=scope)
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site:
        own = site in ("same-origin", "none")
    else:
        own = origin is None or origin.partition("://")[2] == headers.get("host")
    return not own and (origin is not None or scope["method"] not in READING)


def refuse_other_site(scope: Scope) -> None:
    """Raise ApiError if the request `is_foreign`."""
    if is_foreign(scope):
        raise forbidden("This was sent from another site, and is not done.")


READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


_KEY, _CALLER = "hachi.key", "hachi.caller"
"""Where the scope of a request stores the checked key, and whom the request acts for."""


def key_of(scope: Scope) -> Key | None:
    """Return the key that was checked for a request; None if none was checked or none is needed."""
    key: Key | None = scope.get(_KEY)
    return key


bearer = HTTPBearer(auto_error=False, description="A key from `hachi keys create`.")


async def authenticate(
    request: Request,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None,
    _user: Annotated[str | None, Header(alias=USER_HEADER, description=WHO)] = None,
    _name: Annotated[str | None, Header(alias=NAME_HEADER, description=CALLED)] = None,
    _token: Annotated[str | None, Header(alias=TOKEN_HEADER, description=SIGNED)] = None,
    _chat: Annotated[str | None, Header(alias=CHAT_HEADER, description=WHICH)] = None,
    _task: Annotated[str | None, Header(alias=TASK_HEADER, description=OWN_TASK)] = None,
) -> Caller:
    """Return the caller of a request, who acts for the `user` of its path. Health checks need no key. Raises
    ApiError. The other parameters only describe the API."""
    authenticator: Authenticator = request.app.state.authenticator
    caller = await authenticator.caller(request.scope)
    caller = replace(caller, user=caller.acting_for(request.path_params.get("user")))
    request.state.operator = caller.admin
    request.state.acts_for = caller.user
    return caller


def bare_host(host: str) -> str:
    """Return the host of a `Host` header."""
    return (host[1:].partition("]") if host.startswith("[") else host.partition(":"))[0].lower()


async def require_admin(caller: "Authenticated") -> None:
    """Raise ApiError unless the key is an admin's."""
    if not caller.admin:
        raise forbidden("this needs an admin's key: `hachi keys create NAME --service --admin`")


# FastAPI would call a function that is not async in a thread, which costs more than the function itself.
async def _companion(request: Request) -> Companion:
    pet: Companion = request.app.state.pet
    return pet


Authenticated = Annotated[Caller, Depends(authenticate)]
Pet = Annotated[Companion, Depends(_companion)]
