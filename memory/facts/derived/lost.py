"""What no longer holds, and which values of a profile rest on it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Audience, Place
from memory.sql.memory_rows import is_active
from memory.sql.owner_links import with_replaced as chain_of
from memory.sql.tables import memories, memory_owners, messages, rests_on
from memory.text.names import fold

SET_BY_HAND = ""
"""The message of a profile entry that a person set: it is no derived text."""


@dataclass(frozen=True, slots=True)
class Fact:
    id: str
    user: str
    content: str
    expires_at: datetime | None
    messages: frozenset[str]
    """The ids of the messages that state it."""
    owners: Mapping[str, bool]
    """The owner keys that have it, and whether it still holds for them."""

    @property
    def active(self) -> frozenset[str]:
        return frozenset(owner for owner, holds in self.owners.items() if holds)

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Lost:
    """What no longer holds, and for whom."""

    forgotten: frozenset[str]
    """The ids of messages."""
    facts: Sequence[Fact]
    heard: Mapping[str, Any]
    """The rows of these messages, and of those that state the facts, by id."""
    owners: frozenset[str] | None
    instead: str
    now: datetime
    undone: bool = False
    """Whether it ends because a forgetting is undone: nobody has lost anything by that."""

    @property
    def ids(self) -> set[str]:
        return {*self.forgotten, *self.heard, *(fact.id for fact in self.facts)}

    @property
    def people(self) -> set[str]:
        return {row.user_id for row in self.heard.values()} | {fact.user for fact in self.facts}

    @property
    def expired(self) -> bool:
        """Whether nothing but expiry ended what no longer holds."""
        return not self.forgotten and all(fact.expired(self.now) for fact in self.facts)

    def concerns(self, user: str, place: Place) -> bool:
        """Whether what this person reads in this place is among what no longer holds."""
        return self.owners is None or not self.owners.isdisjoint(Audience.of(user, place).keys)

    def takes(self, row: Any) -> bool:
        """Whether an entry of a profile was said in a forgotten message, or repeats a lost fact. Where it is
        not known in which message it was said, it was in one that it repeats."""
        if row.message_id == SET_BY_HAND:
            return False
        if row.message_id is None and any(
            said.role == "user"
            and said.user_id == row.user_id
            and said.place == row.place
            and said.sent_at <= row.said_at
            and repeats(row.value, said.text, self.instead, said.author)
            for said in (self.heard[id] for id in self.forgotten & self.heard.keys())
        ):
            return True
        return row.message_id in self.forgotten or any(
            (row.message_id in fact.messages or (row.message_id is None and fact.user == row.user_id))
            and repeats(row.value, fact.content, self.instead, self._authors(fact))
            for fact in self.facts
        )

    def _authors(self, fact: Fact) -> str:
        return " ".join(self.heard[id].author for id in fact.messages & self.heard.keys())


def repeats(value: str, fact: str, instead: str, names: str) -> bool:
    """Whether a value of the profile says what the fact says and the statement `instead` of it does not: half
    of its words or more. The person's own `names` do not count, since every fact about them holds those."""
    said, old, new = fold(value), fold(fact), fold(instead)
    words = [word for word in _words(said) if word not in _words(fold(names))]
    shared = [word for word in words if word in _words(old)]
    if shared:
        return 2 * len(shared) >= len(words) and any(word not in _words(new) for word in shared)
    return bool(words) and said in old and said not in new  # in scripts without blanks between words


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


async def with_replaced(connection: AsyncConnection, memory_ids: Collection[str]) -> set[str]:
    """These memories and those that they had replaced for everybody, which are deleted with them."""
    found = await chain_of(connection, memory_ids)
    holding = select(memory_owners.c.memory_id).where(memory_owners.c.memory_id.in_(found), is_active())
    return found.difference(await connection.scalars(holding)).union(memory_ids)


async def read(
    connection: AsyncConnection, message_ids: Collection[str], memory_ids: Collection[str]
) -> tuple[list[Fact], dict[str, Any]]:
    """The facts, and the messages by id."""
    stated: dict[str, set[str]] = {}
    facts: list[Any] = []
    if memory_ids:
        sources = select(rests_on).where(rests_on.c.derived_id.in_(memory_ids), rests_on.c.how == "stated")
        for row in await connection.execute(sources):
            stated.setdefault(row.derived_id, set()).add(row.source_id)
        owners = await links_of(connection, memory_ids)
        found = await connection.execute(select(memories).where(memories.c.id.in_(memory_ids)))
        facts = [
            Fact(
                row.id,
                row.user_id,
                row.content,
                row.expires_at,
                frozenset(stated.get(row.id, ())),
                owners.get(row.id, {}),
            )
            for row in found
        ]
    ids = {*message_ids, *(id for said in stated.values() for id in said)}
    heard = await connection.execute(select(messages).where(messages.c.id.in_(ids))) if ids else ()
    return facts, {row.id: row for row in heard}


async def links_of(connection: AsyncConnection, memory_ids: Collection[str]) -> dict[str, dict[str, bool]]:
    """Whether each owner of these memories still holds them, by memory and owner key."""
    found: dict[str, dict[str, bool]] = {}
    for row in await connection.execute(
        select(memory_owners).where(memory_owners.c.memory_id.in_(memory_ids))
    ):
        found.setdefault(row.memory_id, {})[row.owner] = row.superseded_by is None
    return found
