"""Link the accounts of one person: a code shown on one account is typed on the other.

A link only adds owner keys that may be read in private. No row moves: once unlinked, each account has what
was said on it. Codes are stored as digests."""

import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import uuid4

from sqlalchemy import bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place, user_key
from memory.errors import MemoryFault, NotFound
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.keys import digest
from memory.sql.memories.store import tellers
from memory.sql.tables import erasures, link_codes, links, messages

T = TypeVar("T")

VALID_FOR = timedelta(minutes=10)
"""How long a code links, and for how long wrong ones count."""
MOST_WRONG = 5
"""Wrong codes that an account may type in this time."""
LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Of a code: none that looks like another."""
LENGTH = 10
"""Letters of a code: with these, 49 bits."""
NONE_FRESH = 2.0
"""Seconds for which "nobody is linked" is cached. A link made by another process takes effect after so long;
its end takes effect at once."""
LOCK = "links"
"""The lock of those who link, unlink and erase. It is rare, so one is enough."""
MOST_PLACES, LOOKED_AT = 20, 2_000
"""The most places that a person reads in private, those where they wrote last, and how many of their newest
messages and replies are looked at for them."""

_other, _mine = links.alias("other"), links.alias("mine")
LINKED = (
    select(_other.c.user_id)
    .join(_mine, _mine.c.person == _other.c.person)
    .where(_mine.c.user_id == bindparam("user"), _other.c.user_id != bindparam("user"))
)
_newest = (
    select(messages.c.place, messages.c.role, messages.c.seq)
    .where(messages.c.user_id == bindparam("user"))
    .order_by(messages.c.seq.desc())
    .limit(LOOKED_AT)
    .subquery()
)
_WRITTEN = (
    select(_newest.c.place)
    .where(_newest.c.role == "user", _newest.c.place != "")
    .group_by(_newest.c.place)
    .order_by(func.max(_newest.c.seq).desc())
    .limit(MOST_PLACES)
    .subquery()
)
_ANY = select(links.c.user_id).limit(1)
_BOTH = LINKED.union_all(select(_WRITTEN.c.place))
"""Linked accounts and, as keys, the places where the person wrote. Built once: turns ask."""


class NotLinked(MemoryFault):
    """Accounts that cannot be linked. The text says why, and what to do."""

    status, code = 409, "not_linked"


class Links:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._none_until = 0.0

    async def of(self, user: str) -> tuple[str, ...]:
        """Return the accounts that are linked with this one."""
        if time.monotonic() < self._none_until:
            return ()
        if not await self._database.rows(_ANY):
            self._none_until = time.monotonic() + NONE_FRESH
            return ()
        return tuple(sorted(row.user_id for row in await self._database.rows(LINKED, {"user": user})))

    async def audience(self, user: str, place: Place) -> Audience:
        """Return what the person may read there; in private also what their linked accounts may."""
        if not place.private:
            return Audience.of(user, place)
        return Audience.of(user, place, {user_key(one): one for one in await self.of(user)})

    @staticmethod
    def teller(memory: Memory, user: str, audience: Audience) -> str:
        """Return which account of the audience stated a memory: the user's if it did, else another."""
        told = tellers(memory.owners, memory.user_id)
        others = [one for key, one in audience.besides.items() if key in told]
        return user if user_key(user) in told or not others else others[0]

    async def as_teller(self, user: str, act: Callable[[str], Awaitable[T]]) -> T:
        """Call `act` with this account and, if that raises NotFound, with each linked one."""
        try:
            return await act(user)
        except NotFound:
            for other in await self.of(user):
                with suppress(NotFound):
                    return await act(other)
            raise

    async def with_places(self, user: str) -> tuple[dict[str, str], list[Place]]:
        """Return what `audience` adds in private, and where the person wrote, the newest place first. One
        statement."""
        found = [row.user_id for row in await self._database.rows(_BOTH, {"user": user})]
        places = [key for key in found if key.startswith("place:")]
        return {user_key(one): one for one in found if one not in places}, [*map(Place.of_key, places)]

    async def code(self, user: str, now: datetime) -> str:
        """Return a new code, once, that links another account with this one for ten minutes. An earlier one
        is void."""
        code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        new = insert(link_codes).values(user_id=user, digest=digest(code), given_at=now, wrong=0)
        given = {"digest": new.excluded.digest, "given_at": new.excluded.given_at}
        put = new.on_conflict_do_update(index_elements=["user_id"], set_=given)
        async with self._database.write(lock={LOCK}) as connection:
            times = (link_codes.c.given_at, link_codes.c.wrong_since)
            old = [or_(at.is_(None), at <= now - VALID_FOR) for at in times]
            await connection.execute(delete(link_codes).where(*old))
            await _refuse_erased(connection, user)
            await connection.execute(put)
        return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"

    async def giver(self, code: str, user: str, now: datetime) -> str:
        """Return the account that got this code, which `user` types. The code stays. Raises NotLinked."""
        async with self._database.write(lock={LOCK}) as connection:
            giver, why = await _giver(connection, code, user, now)
        if why:
            raise NotLinked(why)
        return giver

    async def link(self, code: str, user: str, now: datetime) -> tuple[str, ...]:
        """Link this account with the one that got the code, and return all that are linked with it now. A
        code links once. Raises NotLinked."""
        async with self._database.write(lock={LOCK}) as connection:
            giver, why = await _giver(connection, code, user, now)
            if not why:
                await connection.execute(
                    update(link_codes).where(link_codes.c.user_id == giver).values(digest=None, given_at=None)
                )
                both = links.c.user_id.in_({giver, user})
                person = await connection.scalar(select(links.c.person).where(both)) or str(uuid4())
                rows = [{"user_id": one, "person": person, "since": now} for one in (giver, user)]
                await connection.execute(insert(links).on_conflict_do_nothing(), rows)
        if why:
            raise NotLinked(why)
        self._none_until = 0.0
        return await self.of(user)

    async def unlink(self, user: str) -> tuple[str, ...]:
        """Unlink this account from the others, and return those."""
        async with self._database.write(lock={LOCK}) as connection:
            others = tuple(await connection.scalars(LINKED, {"user": user}))
            alone = others if len(others) == 1 else ()
            await connection.execute(delete(links).where(links.c.user_id.in_({user, *alone})))
            gone = update(link_codes).where(link_codes.c.user_id == user)
            await connection.execute(gone.values(digest=None, given_at=None))
        return tuple(sorted(others))


async def _giver(connection: AsyncConnection, code: str, user: str, now: datetime) -> tuple[str, str]:
    """Return the account that got the code, and why it cannot be linked, if so. Counts wrong codes."""
    rows = {
        row.user_id: row
        for row in await connection.execute(
            select(link_codes).where(
                or_(link_codes.c.user_id == user, link_codes.c.digest == digest(_letters(code)))
            )
        )
    }
    mine = rows.get(user)
    since = mine.wrong_since if mine and mine.wrong_since and now - mine.wrong_since < VALID_FOR else None
    wrong = mine.wrong if mine and since else 0
    if wrong >= MOST_WRONG:
        return "", f"{MOST_WRONG} wrong codes: wait ten minutes, then get a new code on the other account"
    named = [row for row in rows.values() if row.digest == digest(_letters(code))]
    valid = [row.user_id for row in named if now - row.given_at < VALID_FOR]
    if valid == [user]:
        return "", "this code was created on this account: type it on the other one"
    if not valid:
        new = insert(link_codes).values(user_id=user, wrong=wrong + 1, wrong_since=since or now)
        counted = {"wrong": new.excluded.wrong, "wrong_since": new.excluded.wrong_since}
        await connection.execute(new.on_conflict_do_update(index_elements=["user_id"], set_=counted))
        return "", "this code is wrong, used or older than ten minutes: get a new one on the other account"
    await _refuse_erased(connection, user, *valid)
    both = select(links.c.person).where(links.c.user_id.in_({user, *valid}))
    people = list(await connection.scalars(both))
    if len(people) == 2:
        return "", (
            "these accounts are linked already"
            if people[0] == people[1]
            else "both accounts are linked with others already: unlink one of them first"
        )
    return valid[0], ""


async def _refuse_erased(connection: AsyncConnection, *users: str) -> None:
    """Raise NotLinked while one of these accounts is being erased."""
    erased = select(erasures.c.user_id).where(erasures.c.user_id.in_(users)).limit(1)
    if await connection.scalar(erased) is not None:
        raise NotLinked("one of these accounts is being erased: try again when that is done")


def _letters(code: str) -> str:
    """Return what was typed as a code is written."""
    return "".join(code.split()).replace("-", "").upper()[: 2 * LENGTH]
