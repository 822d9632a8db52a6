"""Deletes memories for good: expired ones, and those that people delete."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import PRIVATE, user_key
from memory.erasure import memory_removal, message_removal
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.message_removal import Readers
from memory.erasure.person.replies import replies_left_behind
from memory.erasure.repetition import TELLING, words
from memory.erasure.taken import echoing
from memory.facts.derived import HeldFacts, withhold, withhold_lost
from memory.people.profile_entries import Entry
from memory.people.profile_store import ProfileStore
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.jobs import FORGET_OUTSIDE, JobQueue
from memory.sql.memory_rows import fetch
from memory.sql.owner_links import with_replaced
from memory.sql.tables import memories, messages

BATCH = 500
"""Expired memories deleted in one transaction."""
CALLS_WAIT = timedelta(days=1)
"""How long after its message a call of a client's tool may get its result by `previous_response_id`."""


@dataclass(frozen=True)
class Forgetting:
    database: Database
    queue: JobQueue
    clock: Callable[[], datetime]

    async def purge(self) -> list[Memory]:
        """Delete all expired memories of all owners, and return them. If an expired memory had replaced an
        older one, the older one becomes active again unless it has expired too. Calls of clients' tools that
        wait for longer than `CALLS_WAIT` go too."""
        old = messages.c.sent_at < self.clock() - CALLS_WAIT
        async with self.database.write() as connection:
            await message_removal.drop_client_items(connection, old)
        purged: list[Memory] = []
        while batch := await self._purge_batch():
            purged += batch
        return purged

    async def _purge_batch(self) -> list[Memory]:
        now = self.clock()
        async with self.database.read() as connection:
            due = await memory_removal.expired(connection, now, BATCH)
        async with self.database.write(lock=_owners(due)) as connection:
            batch = await memory_removal.expired(connection, now, BATCH)
            await memory_removal.revive(connection, [memory.id for memory in batch], now)
            await self._delete_rows(connection, batch)
        return batch

    async def delete_for_all(self, given: Sequence[Memory]) -> None:
        """Delete these memories for all their owners."""
        async with self.database.write(lock=_owners(given)) as connection:
            await self._delete_rows(connection, given)

    async def delete(self, memory: Memory, user: str) -> None:
        """Delete a memory for a person. See `memory_removal.unlink` for other owners and NotFound."""
        async with self.database.write(lock=memory.owners | {user_key(user)}) as connection:
            held = await HeldFacts.of(connection, await with_replaced(connection, [memory.id]))
            await memory_removal.unlink(connection, memory, user)
            await withhold_lost(connection, held, self.clock())
            await self._empty_replies(connection, user, held)

    async def make_private(self, memory: Memory, user: str) -> str:
        """Remove a person's memory from all places, with what it had replaced, the messages that told it and
        the replies there that answered those or contain it. Summaries are written again from what is left.
        The person keeps all that is theirs, for themselves alone. Returns the id of the job, claimed by the
        caller, that empties the traces of the places that show it. `memory_removal.make_private` documents
        when it raises NotFound."""
        now = self.clock()
        async with self.database.write(lock=memory.owners | {user_key(user)}) as connection:
            places = {owner for owner in memory.owners if owner.startswith("place:")}
            chain = memories.c.id.in_(await with_replaced(connection, [memory.id]))
            facts = await fetch(connection, chain & (memories.c.user_id == user))
            told = await message_removal.sources_of(connection, [fact.id for fact in facts], user)
            outside = await self._leave_places(connection, user, places, facts, told)
            await memory_removal.make_private(connection, memory, user, now)
        return outside

    async def _leave_places(
        self,
        connection: AsyncConnection,
        user: str,
        places: Collection[str],
        facts: Sequence[Memory],
        told: Collection[str],
    ) -> str:
        """Take what shows these facts of the person from these places. Returns the id of the job for the
        traces."""
        now, known = self.clock(), [fact.id for fact in facts]
        teller = await message_removal.teller_words(connection, user)
        readers, contents = Readers(user, frozenset(places)), [fact.content for fact in facts]
        heard = await message_removal.heard_by(connection, readers)
        heard = [row for row in heard if row.place and readers.lost(row, shared=True)]
        told = {row.id for row in heard}.intersection(told)  # elsewhere they stay
        said = [row.text for row in heard if row.id in told]
        contents += [text for text in said if len(words(text)) >= TELLING]
        replies, _ = await message_removal.replies(
            connection, heard, readers, told, contents, teller, shared=True
        )
        echoes = await echoing(connection, [*known, *told], contents, user)
        known += [echo.id for echo in echoes]
        withheld = await withhold(connection, now, memory_ids=known, message_ids=replies, owners=places)
        own = {row.id for row in heard if row.user_id == user}
        await message_removal.leave_places(connection, told, replies.keys() & own, now)
        await message_removal.empty(connection, replies.keys() - own, now)
        at = timedelta(microseconds=1)  # later than what stands in its place there
        entries = [
            Entry(row["field"], row["item"], row["value"], row["said_at"] + at, row["message_id"])
            for row in withheld.entries
            if row["user_id"] == user
        ]
        await ProfileStore(self.database).merge_in(connection, user, PRIVATE, entries)
        texts = [row.text for row in heard if row.id in told or row.id in replies]
        data = ForgottenData(user, frozenset({*told, *replies}), tuple(contents), tuple(texts), teller)
        outside = data.to_json() | {"places": sorted(places), "until": now.isoformat()}
        outside["since"] = min(fact.created_at for fact in facts).isoformat() if facts else now.isoformat()
        job = await self.queue.add(connection, FORGET_OUTSIDE, user, outside, now, ours=True)
        await memory_removal.take_away(connection, {echo.id: places for echo in echoes})
        return job

    async def _delete_rows(self, connection: AsyncConnection, given: Sequence[Memory]) -> None:
        await withhold(connection, self.clock(), memory_ids=[memory.id for memory in given])
        for user in sorted({memory.user_id for memory in given}):
            theirs = [memory.id for memory in given if memory.user_id == user]
            held = await HeldFacts.of(connection, await with_replaced(connection, theirs))
            await memory_removal.delete_for_everybody(connection, theirs)
            await self._empty_replies(connection, user, held)

    async def _empty_replies(self, connection: AsyncConnection, user: str, held: HeldFacts) -> None:
        """Empty the replies to others that repeat what places have lost of these facts, where nothing else is
        left by which an erasure of the person would find them."""
        now = self.clock()
        if ids := await replies_left_behind(connection, user, held):
            await withhold(connection, now, message_ids=ids)
            await message_removal.empty(connection, ids, now)


def _owners(given: Sequence[Memory]) -> set[str]:
    """The locks of a deletion: a reply to these owners is stored before it, or finds its sources gone."""
    return {owner for memory in given for owner in memory.owners}
