"""Erase a person: hide their rows, purge them at once, and count the rows that are deleted and that stay.

After the first transaction no read returns their rows, and no job stores new ones. The purge then deletes in
batches. Every step is safe to repeat, so a later call completes an interrupted erasure.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from sqlalchemy import Select, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import GLOBAL, user_key
from memory.documents.library import DocumentLibrary
from memory.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory.facts.derived import withhold
from memory.forgetting import erasure_rows as rows
from memory.forgetting import hiding
from memory.forgetting.cascade import of_person, still_linked
from memory.forgetting.erasure_rows import SHARED, SHOWN, STAYS, ErasureProgress
from memory.forgetting.purge import Purge, pass_to_others
from memory.index.indexing import Indexing
from memory.people.links import LOCK as LINKS
from memory.process.pace import unhurried
from memory.records import Erased, Remainder
from memory.sql import changes
from memory.sql import hidden as entries
from memory.sql import tables as t
from memory.sql.engine import Database
from memory.sql.engine.errors import retried
from memory.sql.jobs.deliveries import forget_what_came

log = logging.getLogger("hachi.erasure")

PASSES = 5
"""How often the deletion repeats while the person keeps talking in another process."""
AGAIN = "something came in while it ran; run it again"


class Outside(Protocol):
    """The erasure outside the database and the indexes. Every step is safe to repeat."""

    async def places(self, user: str) -> Collection[str]:
        """Return the keys of further places where they wrote."""
        ...

    async def clean(self, progress: ErasureProgress) -> None:
        """Delete and count their lines in files, their traces, and traces of others that show deleted ids."""
        ...

    async def rewrite(self) -> None:
        """Rewrite the files of other databases, which may contain parts of deleted rows."""
        ...

    def out_of_reach(self) -> Sequence[str]:
        """Return the places with their data that Hachi cannot erase."""
        ...


@dataclass(eq=False)
class Erasure:
    database: Database
    purge: Purge
    indexing: Indexing
    knowledge: DocumentLibrary
    clock: Callable[[], datetime]
    outside: Outside
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """A lock for each person who is being erased. The weak dictionary forgets their id afterwards."""

    async def preview(self, user: str) -> dict[str, int]:
        """Return how many rows `erase` would delete from the database now, by kind. Changes nothing."""
        async with self.database.read() as connection:
            return await rows.count(connection, user)

    async def erase(self, user: str) -> Erased:
        """Delete all data of the person. The receipt includes the counts of an interrupted run. Messages that
        they send meanwhile are answered afterwards, as from a new person. Raises StoreUnavailable."""
        async with self._locks.setdefault(user, asyncio.Lock()):
            return await self._erase(user)

    async def resume(self) -> list[Erased]:
        """Complete interrupted erasures, except those of people who have written since, because their new
        messages would be deleted too."""
        async with self.database.read() as connection:
            unfinished = await rows.unfinished(connection)
        for user in [user for user, spoken in unfinished if spoken]:
            log.warning("the erasure of %s was interrupted, and they have spoken since; run it again", user)
        return [await self.erase(user) for user, spoken in unfinished if not spoken]

    async def finished(self, user: str | None) -> None:
        """Wait until no erasure of this person is running. Raises NotOpen at once if it is closed."""
        self.database.check_usable()
        while user is not None and (lock := self._locks.get(user)) and lock.locked():
            async with lock:
                pass

    async def _erase(self, user: str) -> Erased:
        places = await self.outside.places(user)
        async with self.database.read() as connection:
            progress = await rows.stored_progress(connection, user, places)
        await retried(lambda: self._hide(progress))
        await self.outside.clean(progress)
        for _ in range(PASSES):
            before = progress.counts.total()
            await self._purge(user)
            await self._delete_rows(progress)
            await retried(lambda: self._hide(progress))
            if progress.counts.total() == before:
                break
        await self._delete_documents(progress)
        left = await self._clean_index(progress)
        await self.outside.clean(progress)  # again, for data that arrived meanwhile
        kinds = (await self.preview(user)).items()
        left += [Remainder(kind, count, AGAIN, False) for kind, count in kinds]
        left = left or await self._rewrite()
        await self._finish(progress, done=not left)
        return self._receipt(progress, left)

    async def _hide(self, progress: ErasureProgress) -> None:
        """Hide and count all their rows in one transaction, which also stores that they are being erased. Its
        locks make it wait for running replies in their places."""
        user = progress.user
        async with self.database.read() as connection:
            await rows.look_up(connection, progress)
            cascade = await of_person(connection, user, progress.places, self.clock())
        async with self._stage(progress, cascade.owners | progress.places | {f"erase:{user}"}) as connection:
            now = self.clock()
            await rows.begin(connection, user, now)
            await rows.look_up(connection, progress)
            if await connection.scalar(_hidden_of(user)):
                return
            cascade = await of_person(connection, user, progress.places, now, cascade.scanned)
            summaries = await rows.delete_summaries(connection, user)
            progress.counts["summaries"] += len(summaries)
            progress.add_deleted(summaries)
            if not (cascade.ids or cascade.links):
                return
            theirs = select(t.messages.c.id).where(t.messages.c.user_id == user)
            own = {id async for id in unhurried(await connection.scalars(theirs))}
            facts, said = {fact.id for fact in cascade.facts}, cascade.messages | cascade.replies
            shared = await still_linked(connection, cascade.links)
            progress.add_deleted(facts - shared | said)
            progress.counts["memories"] += len(facts - shared)
            progress.counts[SHARED] += len(shared)
            progress.counts["messages"] += len(own)
            progress.counts["replies"] += len(said - own - cascade.elsewhere)
            progress.counts["tasks"] += len(cascade.tasks)
            progress.counts["context"] += len(cascade.entries)
            progress.counts["history"] += await rows.steps_of(connection, user, facts)
            progress.counts[SHOWN] = max(progress.counts[SHOWN], len(cascade.shown))
            forgetting = await entries.begin(connection, user, "erased", now, now)
            await hiding.hide(connection, forgetting, cascade, now)
            progress.counts["summaries of places"] += await withhold(
                connection, now, message_ids=said, memory_ids=facts, forgetting=forgetting
            )

    async def _delete_rows(self, progress: ErasureProgress) -> None:
        """Delete rows of kinds that are never hidden: jobs, conversations, names, settings."""
        user = progress.user
        async with self._stage(progress, [f"tasks:{user}", f"context:{user}", LINKS]) as connection:
            jobs = await connection.execute(delete(t.work).where(t.work.c.user_id == user))
            progress.counts["work"] += jobs.rowcount
            await forget_what_came(connection, user, self.clock())
            await rows.delete_conversations(connection, user)
            progress.counts.update(await rows.delete_rows(connection, user, self.clock()))
            await rows.unname(connection, user)

    async def _purge(self, user: str) -> None:
        """Delete their hidden rows, and remove them as the author of global memories."""
        for row in await self.database.rows(_hidden_of(user)):
            await retried(partial(self.purge.delete, row.id))
        async with self.database.write() as connection:
            everybodys = select(t.memories.c.id).join(
                t.memory_owners, t.memory_owners.c.memory_id == t.memories.c.id
            )
            everybodys = everybodys.where(t.memories.c.user_id == user, t.memory_owners.c.owner == GLOBAL)
            for id in list(await connection.scalars(everybodys)):
                await pass_to_others(connection, id, user)

    async def _delete_documents(self, progress: ErasureProgress) -> None:
        owner, documents = user_key(progress.user), t.knowledge_documents
        chunks = select(t.knowledge_chunks.c.id).join(documents).where(documents.c.owner == owner)
        async with self._stage(progress) as connection:
            progress.add_deleted(list(await connection.scalars(chunks)))
        progress.counts["documents"] += len(await self.knowledge.remove_all(owner))

    async def _clean_index(self, progress: ErasureProgress) -> list[Remainder]:
        """Remove the deleted rows from the index and from the log of changes."""
        await changes.erase(self.database, user_key(progress.user))
        try:
            left = await self.indexing.erase(progress.ids)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            why = f"it will be removed once this works again, and the erasure is run again: {error}"
            return [Remainder("index", progress.counts["index"], why, False)]
        return [Remainder("index", left, AGAIN, False)] if left else []

    async def _rewrite(self) -> list[Remainder]:
        """Rewrite the database files, whose free pages may contain parts of deleted rows."""
        self.database.drop_copies()
        try:
            await self.database.vacuum()
            await self.outside.rewrite()
        except StoreUnavailable as error:
            return [Remainder("files", 1, f"the erasure is run again: {error}", False)]
        return []

    async def _finish(self, progress: ErasureProgress, *, done: bool) -> None:
        """Delete the erasure's row, or keep it for the next run."""
        async with self.database.write() as connection:
            await (rows.end(connection, progress.user) if done else rows.store(connection, progress))
        await self.database.empty_log()

    def _receipt(self, progress: ErasureProgress, left: Sequence[Remainder]) -> Erased:
        counts = {kind: count for kind, count in progress.counts.items() if count}
        stays = [
            Remainder(kind, counts.pop(kind), why, True) for kind, why in STAYS.items() if kind in counts
        ]
        named = tuple(self.outside.out_of_reach())
        return Erased(progress.user, self.clock(), counts, (*left, *stays), not left, named)

    @asynccontextmanager
    async def _stage(
        self, progress: ErasureProgress, lock: Collection[str] = ()
    ) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that also stores the progress."""
        async with self.database.write(lock) as connection:
            yield connection
            await rows.store(connection, progress)


def _hidden_of(user: str) -> Select[str]:
    return select(t.forgettings.c.id).where(t.forgettings.c.person == user, t.forgettings.c.why == "erased")
