"""Sign links to a person's pages, for use without a key: in a chat, a direct message, on the command line.

A link opens the console as its person, once, within ten minutes.

Each link is signed with a random key of its person, which the database stores. So every process can create
and read links, and they become invalid when the person is erased. The signed content names its purpose, so a
cookie cannot be used as a link.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from itsdangerous import BadData, URLSafeSerializer

from agent.companion import Companion
from agent.turn.context.user_snippet import line
from agent.types.records_json import describe_cascade
from memory.process.spans import new_id
from memory.records import ForgetCandidate
from memory.sql.keys import person_key, person_keys
from memory.text import LINK

VALID = timedelta(minutes=10)
MEMORIES = "/memories"
"""The page with what is remembered about a person."""
LONGEST = 200
"""Maximum characters of one candidate in the text of a message."""
LONGEST_TOKEN = 4_000
"""Maximum characters of a token that is read: it may unpack to a thousand times its length."""
NOTHING = "Nothing that you told matches this, so nothing is forgotten."


@dataclass(frozen=True, slots=True)
class PageLink:
    """The content of a valid link."""

    user: str
    page: str
    once: str
    """A random id of the link, by which its use is recorded."""


async def link_to(pet: Companion, user: str, base: str, page: str = MEMORIES) -> str:
    """Return the address of the person's page; `base` is the server's."""
    token = LINK + await signed_for(pet, user, "link", VALID, page=page, once=new_id())
    return f"{base.rstrip('/')}/enter?{urlencode({'link': token})}"


async def read_link(pet: Companion, token: str) -> PageLink | None:
    """Return the content of a link; None if it is not valid (any more)."""
    claims = await signed_by_person(pet, token.removeprefix(LINK), "link")
    return PageLink(claims["who"], claims["page"], claims["once"]) if claims else None


async def use_link(pet: Companion, link: PageLink) -> bool:
    """Record the use of a link. Returns whether it was the first, in any process."""
    return await pet.conversations.deliveries.first("link", link.once, pet.clock())


def forget_path(candidates: Sequence[ForgetCandidate]) -> str:
    """Return the path of the page on which a person confirms what to forget."""
    fields = [(one.kind, one.id) for one in candidates] + [("asked", candidates[0].asked_in)]
    return f"/forget?{urlencode(fields)}"


async def forget_page(pet: Companion, user: str, base: str, candidates: Sequence[ForgetCandidate]) -> str:
    """Return a text that lists the candidates to forget, with a link to the page that confirms them."""
    if not candidates:
        return NOTHING
    link = await link_to(pet, user, base, forget_path(candidates))
    told = ((line(one.content, LONGEST), describe_cascade(one)) for one in candidates)
    lines = [f"- {text} ({also})" if also else f"- {text}" for text, also in told]
    asks = f"[Choose what to forget]({link}) within ten minutes. Nothing is forgotten before you confirm it."
    return "\n".join(["You told this:", *lines, "", asks])


async def signed_for(pet: Companion, user: str, purpose: str, lasting: timedelta, **more: str) -> str:
    """Return a token for this purpose, signed with the person's key and valid for `lasting`."""
    [key] = (await person_keys(pet.components.database, {user}, pet.clock())).values()
    return signed({"who": user, **more}, key, purpose, pet.clock() + lasting)


async def signed_by_person(pet: Companion, token: str, purpose: str) -> dict[str, Any] | None:
    """Return the content of a token that `signed_for` created for this purpose; None if it is not valid
    now."""
    key = await person_key(pet.components.database, str(unverified(token).get("who") or ""))
    return verified(token, key, purpose, pet.clock()) if key else None


def signed(claims: dict[str, Any], secret: bytes | str, purpose: str, until: datetime) -> str:
    return str(URLSafeSerializer(secret, purpose).dumps(claims | {"until": until.timestamp()}))


def verified(token: str, secret: bytes | str, purpose: str, now: datetime) -> dict[str, Any] | None:
    """Return the content of a token; None if its signature or purpose is wrong, or it has expired."""
    try:
        claims: dict[str, Any] = URLSafeSerializer(secret, purpose).loads(token[:LONGEST_TOKEN])
    except BadData:
        return None
    return claims if claims["until"] > now.timestamp() else None


def unverified(token: str) -> dict[str, Any]:
    """Return the content of a token without verifying it: its user tells which key to verify it with."""
    _, claims = URLSafeSerializer("").loads_unsafe(token[:LONGEST_TOKEN])
    return claims if isinstance(claims, dict) else {}
