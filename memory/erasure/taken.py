"""Takes memories and tasks from the person who has them forgotten, and notes what was taken.

Each function runs in the caller's transaction.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure import memory_removal, restore
from memory.erasure.message_removal import Readers, teller_words
from memory.erasure.repeats import repeated_by_task
from memory.erasure.repetition import NO_WORDS, FactWords, Words, words
from memory.facts.compare.tokens import words_of
from memory.facts.derived import HeldFacts
from memory.facts.echoes import echoes_of
from memory.records import Memory
from memory.sql.memories import tellers
from memory.sql.memory_rows import fetch
from memory.sql.message_rows import kept
from memory.sql.owner_links import with_replaced
from memory.sql.rests_on import stated_in
from memory.sql.tables import memories, memory_owners, messages, rests_on, tasks

FEWEST_WORDS = 3
"""A statement with fewer words is no part of another."""
MOST_NEAR = 3
"""Memories that a receipt names as near what was forgotten."""


@dataclass(frozen=True, slots=True)
class TakenMemories:
    """What a forgetting has removed from the memories."""

    named: Memory | None
    memories: tuple[Memory, ...]
    """Those that lost an owner."""
    gone: tuple[str, ...]
    """Those that no owner has any more."""
    rows: restore.Rows
    owners: frozenset[str]
    """The owner keys that lost one of them."""
    shared: bool
    """Whether somebody else stated the same too."""
    held: HeldFacts
    """What may have lost an owner, as it was."""

    @property
    def ids(self) -> set[str]:
        return {memory.id for memory in self.memories}

    @property
    def messages(self) -> set[str]:
        """The ids of the messages that stated them."""
        return {id for fact in self.held.facts if fact.id in self.ids for id in fact.messages}

    @property
    def contents(self) -> list[str]:
        return [memory.content for memory in self.memories]


async def take(
    connection: AsyncConnection,
    named: Memory | None,
    ids: Sequence[str],
    user: str,
    now: datetime,
    echoes: Sequence[Memory] = (),
) -> TakenMemories:
    """Unlink these memories from the person, and delete the `echoes` of them. If none was named, what they
    had replaced holds again."""
    chain = await with_replaced(connection, [*ids, *(echo.id for echo in echoes)])
    before = await restore.rows_of(connection, chain)
    known = await fetch(connection, memories.c.id.in_(chain))
    held = await HeldFacts.of(connection, chain)
    if named is None:
        await memory_removal.revive(connection, ids, now, corrected=True)
    gone = await memory_removal.unlink(connection, named, user) if named else []
    for id in ids:
        if named is None or id != named.id:
            gone += await memory_removal.unlink_same(connection, id, user)
    if named:  # a place still has what its teller corrected in private
        for id in await _left_behind(connection, before, user):
            gone += await memory_removal.unlink_same(connection, id, user)
    gone += await memory_removal.delete_for_everybody(connection, [echo.id for echo in echoes])
    after = await restore.rows_of(connection, chain)
    lost = restore.changed(before, after)
    links = [row for key, row in lost[memory_owners.name].items() if key not in after[memory_owners.name]]
    still = select(func.count()).where(
        memory_owners.c.memory_id.in_(ids), memory_owners.c.superseded_by.is_(None)
    )
    lost_ids = {link["memory_id"] for link in links}
    return TakenMemories(
        named,
        tuple(memory for memory in known if memory.id in lost_ids),
        tuple(gone),
        lost,
        frozenset(link["owner"] for link in links),
        shared=bool((await connection.execute(still)).scalar()),
        held=held,
    )


async def take_tasks(
    connection: AsyncConnection, readers: Readers, told: Sequence[str], teller: Words, *, shared: bool
) -> list[restore.Row]:
    """Delete the person's tasks that repeat one of these texts, but not in places where somebody else told
    it too. Returns the rows as they were."""
    mine = select(tasks).where(tasks.c.user_id == readers.user)
    rows = [
        row
        for row in await connection.execute(mine.order_by(tasks.c.id).with_for_update())
        if readers.lost(row, shared) and repeated_by_task(row.description, told, teller)
    ]
    await connection.execute(delete(tasks).where(tasks.c.id.in_([row.id for row in rows])))
    return [restore.encoded(row._mapping) for row in rows]


async def stating_the_same(
    connection: AsyncConnection, memory: Memory, user: str, teller: Words
) -> list[str]:
    """The person's other memories that state the same, or a part of it."""
    fact = FactWords.of(memory.content, teller)
    told = select(memory_owners.c.memory_id).where(memory_owners.c.owner == user_key(user))
    theirs = or_(memories.c.user_id == user, memories.c.id.in_(told))
    rows = await connection.execute(
        select(memories.c.id, memories.c.content).where(theirs, memories.c.id != memory.id)
    )
    return [
        row.id
        for row in rows
        if fact.same_as(FactWords.of(row.content, teller)) or _says_less(row.content, memory.content)
    ]


def _says_less(content: str, than: str) -> bool:
    """Whether the other statement begins with all the words of this one."""
    said, more = ([word.key for word in words_of(text)] for text in (content, than))
    return len(said) >= FEWEST_WORDS and said == more[: len(said)] != more


async def near(
    connection: AsyncConnection, gone: Sequence[Memory], known: Sequence[Memory], user: str
) -> tuple[Memory, ...]:
    """Up to `MOST_NEAR` of the `known` memories: the person's own that share a name or another telling word
    with what is gone, those that share most first. The word with which most of these facts begin is no
    telling word: it names the person."""
    teller = await teller_words(connection, user)
    own = [memory for memory in known if user_key(user) in tellers(memory.owners, memory.user_id)]
    begin = Counter(_first(memory.content) for memory in (*gone, *own))
    person = NO_WORDS.union(*(word for word, count in begin.most_common(1) if count > 1))
    lost = NO_WORDS.union(*(FactWords.of(memory.content, teller | person).telling for memory in gone))
    shared = [(len(lost & words(memory.content)), memory) for memory in own]
    found = sorted((one for one in shared if one[0]), key=lambda one: -one[0])
    return tuple(memory for _, memory in found[:MOST_NEAR])


def _first(content: str) -> Words:
    return next(filter(None, (words(word.text) for word in words_of(content))), NO_WORDS)


async def echoing(
    connection: AsyncConnection, ids: Sequence[str], contents: Sequence[str], user: str
) -> list[Memory]:
    """The memories of others that may rest on these messages and memories of the person, and repeat one of
    the texts, or have half of its words."""
    teller = await teller_words(connection, user)
    facts = [FactWords.of(content, teller) for content in contents]
    found = [
        id
        for id, content in await echoes_of(connection, ids, user)
        if any(2 * len(fact.all & words(content)) >= max(len(fact.all), 1) for fact in facts)
    ]
    return await fetch(connection, memories.c.id.in_(found)) if found else []


def resting_on(ids: Collection[str], user: str) -> Select[str]:
    """Selects the memories that these messages of the person state, and no other of theirs that is left."""
    left = select(messages.c.id).where(messages.c.id.not_in(ids), messages.c.user_id == user, kept())
    also = select(rests_on.c.derived_id).where(rests_on.c.source_id.in_(left), rests_on.c.how == "stated")
    return select(memories.c.id).where(
        memories.c.id.in_(stated_in(ids)), memories.c.id.not_in(also), memories.c.message_id.is_not(None)
    )


async def _left_behind(connection: AsyncConnection, before: restore.Rows, user: str) -> list[str]:
    """Which of the memories that the person had `before` they do not have any more."""
    own = user_key(user)
    had = {row["memory_id"] for row in before[memory_owners.name].values() if row["owner"] == own}
    has = select(memory_owners.c.memory_id).where(memory_owners.c.owner == own)
    return sorted(had.difference(await connection.scalars(has.where(memory_owners.c.memory_id.in_(had)))))
