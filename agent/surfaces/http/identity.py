"""Who asks, and for whom: the key proves the one, and bounds the other.

A user's key acts for its user, whatever a header says. A service's key is trusted to name the user. While
no key was ever made, a server that only this machine can reach takes whoever asks for a trusted service.
"""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers

from agent.companion import Companion
from agent.surfaces.http.rates import Rates
from agent.surfaces.http.refusals import Refusal
from memory.sql.keys import Key, Keys

USER = "x-openwebui-user-id"
NAME = "x-openwebui-user-name"
CHAT = "x-openwebui-chat-id"
LONGEST_NAME = 200
"""Characters of the name of a user."""
LONGEST_CHAT = 128
"""Characters of what a client calls a conversation."""
OURSELVES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as far as it is proved."""

    key: Key | None
    """None where none is needed."""
    user: str | None
    """For whom; None is anonymous."""
    author: str | None = None
    """The name to show for the user."""
    chat: str | None = None
    """What the client calls the conversation."""

    @property
    def admin(self) -> bool:
        return self.key is None or self.key.admin

    def acting_for(self, named: str | None) -> str | None:
        """For whom it is, where the address or the body names somebody too. Raises Refusal where that is
        somebody else than may be."""
        named = named.strip() if named else None
        if not named or named == self.user:
            return self.user
        if self.user is not None:
            raise _forbidden(f"this request is for {self.user!r}, and names {named!r}")
        return named


class Door:
    """Lets in who has a key."""

    def __init__(self, keys: Keys, pet: Companion, *, loopback: bool, rates: Rates) -> None:
        self._keys = keys
        self._pet = pet
        self._loopback = loopback
        self._rates = rates

    async def admit(self, secret: str | None, host: str) -> Key | None:
        """The key; None where none is needed. Raises Refusal."""
        key = await self._key(secret, host)
        wait = self._rates.spend(key.id if key else "", time.monotonic())
        if wait:
            after = str(math.ceil(wait))
            message = f"too many requests with this key; try again in {after} s"
            raise Refusal(
                429, "rate_limit_exceeded", message, type="rate_limit_error", headers={"retry-after": after}
            )
        return key

    async def _key(self, secret: str | None, host: str) -> Key | None:
        if self._loopback and not await self._keys.exist():
            if _bare(host) not in OURSELVES:  # a page in a browser here that had its own name point to us
                raise _forbidden("there is no key yet, so only localhost may be asked; `hachi keys create`")
            return None
        key = await self._keys.check(secret, self._pet.clock()) if secret else None
        if key is None:
            message = "no such key" if secret else "a key is missing: Authorization: Bearer KEY"
            raise Refusal(
                401,
                "invalid_api_key",
                message,
                type="authentication_error",
                headers={"www-authenticate": "Bearer"},
            )
        return key


bearer = HTTPBearer(auto_error=False, description="A key that `hachi keys create` made.")


async def identify(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]
) -> Caller:
    """Of every request but those that look whether the server is well. Raises Refusal."""
    door: Door = request.app.state.door
    key = await door.admit(given.credentials if given else None, request.headers.get("host", ""))
    caller = named_by(key, request.headers)
    request.state.in_full = caller.admin
    return caller


def named_by(key: Key | None, headers: Headers) -> Caller:
    """For whom it is: the user of a user's key, or else the one that is named. Raises Refusal."""
    user = _one(headers, USER, LONGEST_NAME)
    author = _one(headers, NAME, 4 * LONGEST_NAME)
    if author is not None:  # Open WebUI quotes what is not ASCII
        author = unquote(author).strip()[:LONGEST_NAME] or None
    if key is not None and key.kind == "user":
        if user not in (None, key.user):
            raise _forbidden(f"this key acts for its own user only, and {USER} names another")
        user = key.user
    return Caller(key, user, author, _one(headers, CHAT, LONGEST_CHAT))


def _one(headers: Headers, name: str, longest: int) -> str | None:
    """A header that may be there once. Python's servers read bytes as Latin-1; people's names are UTF-8."""
    values = {value.strip() for value in headers.getlist(name)} - {""}
    if not values:
        return None
    if len(values) > 1:
        raise Refusal(400, "bad_header", f"{name} is given twice, with different values")
    text = values.pop()
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode()
    if len(text) > longest:
        raise Refusal(400, "bad_header", f"{name} has more than {longest} characters")
    return text


def _bare(host: str) -> str:
    """Without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _forbidden(message: str) -> Refusal:
    return Refusal(403, "forbidden", message, type="permission_error")


def companion(request: Request) -> Companion:
    pet: Companion = request.app.state.pet
    return pet


async def only_admins(caller: "Asking") -> None:
    if not caller.admin:
        raise _forbidden("this needs an admin's key: `hachi keys create NAME --service --admin`")


Asking = Annotated[Caller, Depends(identify)]
Pet = Annotated[Companion, Depends(companion)]
