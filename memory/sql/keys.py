"""Store the API keys for the surfaces that are reachable over a network.

A user's key acts for that user. A service's key belongs to a trusted program, such as a chat server, which
names the user in each request. A key is shown once; the database stores its SHA-256. It has 256 random bits,
so neither guessing nor timing helps an attacker.
"""

import hashlib
import logging
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from sqlalchemy import Select, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from memory.errors import MemoryFault, NotFound, StoreUnavailable
from memory.sql.engine import Database
from memory.sql.memories.memory_rows import begins
from memory.sql.tables import api_keys, users
from memory.text import is_single_line

log = logging.getLogger("hachi.keys")

Kind = Literal["user", "service"]

PREFIX = "hachi-"
"""The prefix of every key, so that a leaked key is recognised."""
NOTED = timedelta(minutes=1)
"""The precision with which the last use of a key is stored."""
LONGEST_NAME = 200
"""The most characters of a key's name, or of its user."""
LONGEST_SECRET = 200
"""A longer text is rejected without hashing it."""


class BadKey(MemoryFault):
    """A key that cannot be created as requested."""

    status, code = 400, "bad_key"


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key, without its secret."""

    id: str
    name: str
    kind: Kind
    user: str | None
    """The user that a user's key acts for; None for a service."""
    admin: bool
    """May see figures about everybody's data."""
    created_at: datetime
    last_used_at: datetime | None = None
    """Precise to the minute."""
    revoked_at: datetime | None = None


_KEYS = select(
    *(api_keys.c[name] for name in ("id", "name", "kind", "user_id")),
    api_keys.c.admin != 0,
    *(api_keys.c[name] for name in ("created_at", "last_used_at", "revoked_at")),
)
"""The fields of a `Key`, in order."""
_ACTIVE = _KEYS.where(api_keys.c.revoked_at.is_(None))


class Keys:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._any = False

    async def create(
        self, name: str, kind: Kind, user: str | None = None, admin: bool = False, *, now: datetime
    ) -> tuple[Key, str]:
        """Create a key. Returns it and its secret, which cannot be read again. Raises BadKey."""
        if (kind == "user") != (user is not None):
            raise BadKey("a key is a user's, who is named, or a service's, which names users itself")
        named = _named(name, "key")
        whose = None if user is None else _named(user, "user")
        key = Key(str(uuid4()), named, kind, whose, admin, now)
        secret = PREFIX + secrets.token_urlsafe(32)
        row = insert(api_keys).values(
            id=key.id,
            name=named,
            kind=kind,
            user_id=whose,
            admin=int(admin),
            digest=digest(secret),
            created_at=now,
        )
        await self._database.run(row)
        return key, secret

    async def all(self) -> list[Key]:
        """Return all keys, including revoked ones, newest first."""
        return await self._read(_KEYS.order_by(api_keys.c.created_at.desc(), api_keys.c.id))

    async def exist(self) -> bool:
        """Return whether a key was ever created. Revoked keys count: they must not open the server."""
        if not self._any:  # rows are never deleted
            self._any = bool(await self._read(_KEYS.limit(1)))
        return self._any

    async def check(self, secret: str, now: datetime) -> Key | None:
        """Return the key with this secret; None if it does not exist or is revoked."""
        if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET:
            return None
        found = await self._read(_ACTIVE.where(api_keys.c.digest == digest(secret)))
        for key in found:
            if key.last_used_at is None or now - key.last_used_at >= NOTED:
                await self._note_use(key, now)
        return next(iter(found), None)

    async def active(self, id: str) -> tuple[Key, str] | None:
        """Return the key with this id and the digest of its secret; None if missing or revoked."""
        query = _ACTIVE.add_columns(api_keys.c.digest).where(api_keys.c.id == id)
        rows = await self._database.rows(query)
        return (Key(*rows[0][:-1]), rows[0].digest) if rows else None

    async def revoke(self, id: str, now: datetime) -> Key:
        """Revoke and return the key with this id, or prefix of eight or more characters. Raises NotFound."""
        named = begins(api_keys.c.id, id.lower())
        found = await self._read(_ACTIVE.where(named)) if id.isascii() and id.isprintable() else []
        if len(found) != 1:
            raise NotFound(f"no key {id[:80]!r} that is not revoked; `hachi keys list` shows the ids")
        same = update(api_keys).where(api_keys.c.id == found[0].id)
        await self._database.run(same.values(revoked_at=now))
        return found[0]

    async def _note_use(self, key: Key, now: datetime) -> None:
        """Store the time of use. Only one of several concurrent requests writes it."""
        due = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at <= now - NOTED)
        try:
            noted = update(api_keys).where(api_keys.c.id == key.id, due).values(last_used_at=now)
            await self._database.run(noted)
        except StoreUnavailable as error:
            log.warning("the use of key %s is not noted: %s", key.id, error)

    async def _read(self, query: Select[Any]) -> list[Key]:
        return [Key(*row) for row in await self._database.rows(query)]


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret in hexadecimal, which the database stores."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _named(text: str, what: str) -> str:
    """Return the text as one line that can be stored and printed. Raises BadKey otherwise."""
    name = text.strip()
    if not is_single_line(name):
        raise BadKey(f"the {what} needs a name: one line of readable text")
    if len(name) > LONGEST_NAME:
        raise BadKey(f"the {what}'s name has {len(name)} characters, more than {LONGEST_NAME}")
    return name


async def person_key(database: Database, person: str) -> bytes | None:
    """Return the random key of a person; None if they have none."""
    rows = await database.rows(select(users.c.import_key).where(users.c.id == person))
    return bytes.fromhex(rows[0].import_key) if rows and rows[0].import_key else None


async def person_keys(database: Database, people: Collection[str], now: datetime) -> dict[str, bytes]:
    """Return the random key of each of these people, and make missing ones. The keys are in no export and are
    erased with the person."""
    keys: dict[str, bytes] = {}
    if not people:
        return keys
    async with database.write() as connection:
        for person in sorted(people):
            there = insert(users).values(id=person, created_at=now)
            await connection.execute(there.on_conflict_do_nothing())
            mine = users.c.id == person
            lacking = update(users).where(mine, users.c.import_key.is_(None))
            await connection.execute(lacking.values(import_key=secrets.token_hex(32)))
            stored = await connection.scalar(select(users.c.import_key).where(mine))
            keys[person] = bytes.fromhex(str(stored))
    return keys
