"""Signed links to a person's pages, for where no key is at hand: a chat without buttons, a direct message,
the command line. A link opens the console as its person, and is valid for ten minutes.

Each is signed with a random key of its person, which the database has: any process may make one and any may
read it, and it ends when they are erased.
"""

import hmac
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import jwt

from agent.companion import Companion
from agent.turn.context.user_snippet import line
from agent.types.records_json import goes_with
from memory.records import ForgetCandidate
from memory.sql.keys import person_key, person_keys

VALID = timedelta(minutes=10)
MEMORIES = "/memories"
"""The page of what is remembered of a person."""
LONGEST = 200
"""Characters of one thing that was told."""
NOTHING = "Nothing that you told matches this, so nothing is forgotten."
_NOT_CHECKED: Any = {"verify_signature": False}
_BY_CLOCK: Any = {"verify_exp": False, "verify_iat": False, "require": ["sub", "exp"]}
"""`jwt` would ask the system's clock."""


async def link_to(pet: Companion, user: str, base: str, page: str = MEMORIES) -> str:
    """Return the address of the person's page; `base` is that of the server."""
    token = await token_of(pet, user, page, VALID)
    return f"{base.rstrip('/')}/enter?{urlencode({'link': token})}"


async def token_of(pet: Companion, user: str, page: str, lasting: timedelta) -> str:
    """Return what opens the person's pages, first this one, for so long."""
    [key] = (await person_keys(pet.components.database, {user}, pet.clock())).values()
    return signed({"sub": user, "page": page}, _for_links(key), pet.clock() + lasting)


async def read_link(pet: Companion, token: str) -> tuple[str, str] | None:
    """Return whom a token is for, and the page; None if it is not valid or not any more."""
    user = str(unverified(token).get("sub") or "")
    key = await person_key(pet.components.database, user)
    claims = verified(token, _for_links(key), pet.clock()) if key else None
    return (user, str(claims["page"])) if claims else None


def forget_path(found: Sequence[ForgetCandidate]) -> str:
    """Return the page on which a person confirms what of this is to be forgotten."""
    fields = [(one.kind, one.id) for one in found] + [("asked", found[0].asked_in)]
    return f"/forget?{urlencode(fields)}"


async def forget_page(pet: Companion, user: str, base: str, found: Sequence[ForgetCandidate]) -> str:
    """Return in words what was found that a person may mean, with a link to where they confirm it."""
    if not found:
        return NOTHING
    link = await link_to(pet, user, base, forget_path(found))
    told = ((line(one.content, LONGEST), goes_with(one)) for one in found)
    lines = [f"- {text} ({also})" if also else f"- {text}" for text, also in told]
    asks = f"[Choose what to forget]({link}) within ten minutes. Nothing is forgotten before you confirm it."
    return "\n".join(["You told this:", *lines, "", asks])


def unverified(token: str) -> dict[str, Any]:
    """Return what a token says, whoever wrote it: the name in it tells which key to verify it with."""
    with suppress(jwt.PyJWTError):
        claims: dict[str, Any] = jwt.decode(token, options=_NOT_CHECKED)
        return claims
    return {}


def signed(claims: dict[str, Any], secret: bytes | str, until: datetime) -> str:
    return jwt.encode(claims | {"exp": int(until.timestamp())}, secret, "HS256")


def verified(token: str, secret: bytes | str, now: datetime) -> dict[str, Any] | None:
    """Return what a token says; None if it is not signed with the secret, or not valid any more."""
    try:
        claims: dict[str, Any] = jwt.decode(token, secret, ["HS256"], options=_BY_CLOCK)
        return claims if float(claims["exp"]) > now.timestamp() else None
    except (jwt.PyJWTError, TypeError, ValueError):
        return None


def _for_links(key: bytes) -> bytes:
    """Return a key for this alone: the other one makes ids."""
    return hmac.digest(key, b"links", "sha256")
