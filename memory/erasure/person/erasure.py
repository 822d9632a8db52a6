"""Erases a person: deletes all their data, then verifies that it is gone.

The first transaction stores the list of what is to be deleted (`listing`). Every stage may run again, so a
later call completes an interrupted erasure with the same list. The database is erased in batches. Messages
are deleted first: a process that still works on one of them finds it missing and stores nothing
(`memory.sql.messages.missing`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.documents.library import DocumentLibrary
from memory.erasure import memory_removal, message_removal, restore
from memory.erasure.person import listing, own_rows
from memory.erasure.person.memories import NOBODY, erase_memories, memory_ids_of, owners_of
from memory.erasure.person.messages import empty_quotes, erase_conversations, erase_messages
from memory.erasure.person.personal_data import DERIVED, LISTS, SOURCES, rows_containing, rows_naming
from memory.erasure.person.receipt import CleanPayload, Erased, ErasureProgress, Outside, Remainder
from memory.erasure.person.replies import telling_replies
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.facts.derived import withhold
from memory.facts.evidence.echoes import echoes_of
from memory.index import Index
from memory.index.sync import IndexSync
from memory.sql import tables
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.jobs import UNINDEX, JobQueue

BATCH = 200
"""Rows deleted in one transaction. Other writers wait for it."""
UNVERIFIED = (
    "they were written to others while something of this person was in view; they do not name them and have"
    " no word of theirs, and nothing else can be verified"
)
"""Why replies are left, and where their number is kept meanwhile."""
PASSES = 5
"""How often the deletion repeats while the person keeps talking in another process."""


@dataclass(eq=False)
class Erasure:
    database: Database
    queue: JobQueue
    indexing: IndexSync
    index: Index
    knowledge: DocumentLibrary
    knowledge_index: Index
    clock: Callable[[], datetime]
    clean_payload: CleanPayload

    async def preview(self, user: str) -> dict[str, int]:
        """How many rows `erase` would delete from the database now, by kind. Changes nothing."""
        async with self.database.read() as connection:
            return await own_rows.count(connection, user)

    async def unfinished(self) -> list[tuple[str, bool]]:
        """The people whose erasure is running or was interrupted, and whether each has spoken since."""
        async with self.database.read() as connection:
            return await listing.unfinished(connection)

    async def erase(self, user: str, places: Collection[str] = (), outside: Outside | None = None) -> Erased:
        """Delete all data of the person. A later call completes an interrupted one, and its receipt counts
        what both removed. `places` are further keys of places where they spoke; `outside` deletes what is not
        in the database or the indexes. The receipt names an unavailable index. Raises StoreUnavailable."""
        async with self.database.write(lock=[f"erase:{user}"]) as connection:
            progress = await listing.begin(connection, user, places, self.clock())
        if outside is not None:
            progress.removed.update(await outside.files(progress))
        for _ in range(PASSES):
            if not await self._pass(progress):
                break
        await self._delete_documents(progress)
        left = await self._clean_indexes(progress)
        if outside is not None:  # once more, for what came in meanwhile
            for step in (outside.files, outside.rest):
                progress.removed.update(await step(progress))
        found = await self._verify(progress)
        tables_left = not all(one.expected for one in found)
        left += found
        clean = all(one.expected for one in left)
        left += await self._finish(progress, outside, clean=clean, tables_left=tables_left)
        if unverified := progress.removed.pop(UNVERIFIED, 0):
            left.append(Remainder("replies", unverified, UNVERIFIED, True))
        removed = {kind: count for kind, count in progress.removed.items() if count}
        verified = all(one.expected for one in left)
        named = tuple(outside.out_of_reach()) if outside is not None else ()
        return Erased(user, self.clock(), removed, tuple(left), verified, named)

    async def _finish(
        self, progress: ErasureProgress, outside: Outside | None, *, clean: bool, tables_left: bool
    ) -> Sequence[Remainder]:
        """Delete the list if nothing is left, and search the files, which must not hold the list either."""
        async with self.database.write() as connection:
            if clean:
                await listing.end(connection, progress.user)
            else:
                await listing.store_counts(connection, progress)
                if not tables_left:  # only ids are still needed
                    await listing.drop_texts(connection, progress.user)
        await self.database.empty_log()
        return await outside.search(progress) if clean and outside is not None else ()

    # Deleting.

    async def _pass(self, progress: ErasureProgress) -> bool:
        """Delete all rows that exist now. Returns whether any existed; the next pass deletes later ones."""
        before = progress.removed.total()
        # First, so that no worker starts these jobs. The locks wait until replies in these places are stored
        # that were not checked against the list (`memory.facts.derived.replies`).
        async with self._stage(progress, progress.places) as connection:
            progress.removed.update(await own_rows.delete_work(connection, progress.user))
        await self._forget_replies(progress)
        await self._retried(self._forget_echoes, progress)
        for step in (self._message_batch, self._memory_batch):
            while await self._retried(step, progress):
                pass
        await self._rest(progress)
        return progress.removed.total() > before

    async def _retried(
        self, step: Callable[[ErasureProgress], Awaitable[bool]], progress: ErasureProgress
    ) -> bool:
        """Run the step, and retry it while others write to the same memories."""
        for _ in range(PASSES - 1):
            try:
                return await step(progress)
            except Overtaken:
                continue
        return await step(progress)

    async def _forget_replies(self, progress: ErasureProgress) -> None:
        """Empty the replies to others that tell what the person told, while their messages are there to
        compare with."""
        async with self.database.read() as connection:
            found = await telling_replies(connection, progress.user, progress.places)
        if found.ids or found.unverified:
            async with self._stage(progress) as connection:
                await withhold(connection, self.clock(), message_ids=found.ids)
                await message_removal.empty(connection, found.ids, self.clock())
                progress.removed["replies"] += len(found.ids)
                progress.removed[UNVERIFIED] = max(progress.removed[UNVERIFIED], len(found.unverified))

    async def _forget_echoes(self, progress: ErasureProgress) -> bool:
        """Delete the memories of others that may only repeat what the person told, while it is there."""
        told = select(tables.messages.c.id).where(tables.messages.c.user_id == progress.user)
        known = select(tables.memories.c.id).where(tables.memories.c.user_id == progress.user)
        sources = union(told, known)
        async with self.database.read() as connection:
            ids = [id for id, _ in await echoes_of(connection, sources, progress.user)]
            lock = await owners_of(connection, ids)
        if not ids:
            return False
        async with self._stage(progress, lock) as connection:
            found = dict(await echoes_of(connection, sources, progress.user))
            await listing.add_ids(connection, progress.user, "memory", list(found))
            await withhold(connection, self.clock(), memory_ids=found)
            gone = await memory_removal.delete_for_everybody(connection, found)
            progress.jobs += await self._add_unindex_job(connection, gone)
            progress.removed["memories"] += len(gone)
        progress.facts.update(found.values())
        return True

    async def _message_batch(self, progress: ErasureProgress) -> bool:
        async with self._stage(progress) as connection:
            erased = await erase_messages(connection, progress.user, BATCH, self.clock())
            await listing.add_ids(connection, progress.user, "message", erased.ids)
            progress.jobs += await self._add_unindex_job(connection, erased.ids)
            counts = {"messages": len(erased.ids), "summaries of places": len(erased.summaries)}
            progress.removed.update(counts)
        progress.messages.update(erased.texts)
        return bool(erased.ids)

    async def _memory_batch(self, progress: ErasureProgress) -> bool:
        user = progress.user
        async with self.database.read() as connection:
            ids = list((await connection.execute(memory_ids_of(user).limit(BATCH))).scalars())
            lock = await owners_of(connection, ids) | {user_key(user)}
        if not ids:
            return False
        async with self._stage(progress, lock) as connection:
            await listing.add_ids(connection, user, "memory", ids)
            erased = await erase_memories(connection, user, ids, self.clock())
            progress.jobs += await self._add_unindex_job(connection, list(erased.deleted))
            counts = {"memories": len(erased.deleted), "memories shared": erased.shared}
            progress.removed.update(counts | {"history": erased.steps})
        progress.facts.update(erased.deleted.values())
        return True

    async def _rest(self, progress: ErasureProgress) -> None:
        """Delete the person's private conversations, the rows that are theirs alone, their name in others'
        rows, and their data in others' jobs."""
        user = progress.user
        async with self._stage(progress, [f"tasks:{user}", f"context:{user}"]) as connection:
            progress.removed.update(await own_rows.delete_rows(connection, user, self.clock()))
            ids = await erase_conversations(connection, user)
            progress.removed["summaries"] += len(ids)
            progress.jobs += await self._add_unindex_job(connection, ids)
            await listing.read_ids(connection, progress)
            quotes = await empty_quotes(connection, await _unique(connection, progress), self.clock())
            progress.removed["summaries of places"] += quotes
            await self._clean_jobs(connection, progress)
            names = {user, user_key(user)}
            await restore.drop_naming(connection, names, set(progress.index_ids), progress.places)
            for column in (tables.places.c.changed_by, tables.memory_updates.c.user_id):
                unnamed = update(column.table).where(column == user)
                await connection.execute(unnamed.values({column.name: NOBODY}))

    async def _clean_jobs(self, connection: AsyncConnection, progress: ErasureProgress) -> None:
        """Remove the person's messages and memories from the payloads of other people's waiting jobs."""
        work, ids = tables.work, set(progress.index_ids)
        waiting = select(work.c.id, work.c.kind, work.c.user_id, work.c.payload)
        for job in (await connection.execute(waiting.where(work.c.kind != UNINDEX))).all():
            clean = self.clean_payload(job.kind, job.user_id, job.payload, ids)
            if clean != job.payload:
                await connection.execute(update(work).where(work.c.id == job.id).values(payload=clean))

    async def _add_unindex_job(self, connection: AsyncConnection, ids: Sequence[str]) -> list[str]:
        """Add a job that removes these points; returns its id. It has no user, so the erasure keeps it."""
        if not ids:
            return []
        return [await self.queue.add(connection, UNINDEX, NOBODY, {"ids": list(ids)}, self.clock())]

    async def _delete_documents(self, progress: ErasureProgress) -> None:
        owner, documents = user_key(progress.user), tables.knowledge_documents
        query = select(tables.knowledge_chunks.c.id).join(documents).where(documents.c.owner == owner)
        async with self._stage(progress) as connection:
            chunks = list((await connection.execute(query)).scalars())
            await listing.add_ids(connection, progress.user, "chunk", chunks)
        progress.removed["documents"] += len(await self.knowledge.remove_all(owner))
        async with self._stage(progress) as connection:
            await listing.read_ids(connection, progress)

    async def _clean_indexes(self, progress: ErasureProgress) -> list[Remainder]:
        """Remove the person's points from both indexes, also those that no list names; index their neighbours
        again, and check that nothing of theirs is left."""
        left = []
        for kind, index, ids, source in (
            ("index", self.index, progress.index_ids, self.indexing),
            ("index of documents", self.knowledge_index, progress.chunk_ids, self.knowledge),
        ):
            if kind != "index" and not ids and await self.knowledge.empty():
                continue  # it may never have been made
            try:
                left += await self._clean_index(kind, index, ids, source.catch_up, progress)
            except (IndexUnavailable, EmbedderUnavailable) as error:
                why = f"it will be removed once this works again, and the erasure is run again: {error}"
                left.append(Remainder(kind, max(len(ids), 1), why, False))
        if not left:
            await self.queue.done(*progress.jobs)
        return left

    async def _clean_index(
        self,
        kind: str,
        index: Index,
        ids: Sequence[str],
        catch_up: Callable[[], Awaitable[int]],
        progress: ErasureProgress,
    ) -> list[Remainder]:
        await index.remove(ids)
        await catch_up()
        unlisted = await index.owned_by(user_key(progress.user))
        await index.remove(unlisted)
        if ids or unlisted:
            await index.compact()
        left = await index.present(ids) | set(await index.owned_by(user_key(progress.user)))
        progress.removed["index"] += len(ids) + len(set(unlisted).difference(ids))
        again = "it was put back meanwhile; run it again"
        return [Remainder(kind, len(left), again, False)] if left else []

    # Verifying.

    async def _verify(self, progress: ErasureProgress) -> list[Remainder]:
        """Search every table for the person's id and statements. Returns what is left."""
        async with self.database.read() as connection:
            naming = await rows_naming(connection, progress.user, LISTS)
            unique = await _unique(connection, progress)
            said_by_others = await rows_containing(connection, progress.sought - unique, SOURCES)
            derived = await rows_containing(connection, unique, DERIVED)
        again = "something came in while it ran; run it again"
        others = "others said or were told the same words"
        return [
            *(Remainder(table, count, again, False) for table, count in (naming | derived).items()),
            *(Remainder(table, count, others, True) for table, count in said_by_others.items()),
        ]

    @asynccontextmanager
    async def _stage(
        self, progress: ErasureProgress, lock: Collection[str] = ()
    ) -> AsyncIterator[AsyncConnection]:
        """A transaction that also stores what has been removed so far."""
        async with self.database.write(lock) as connection:
            yield connection
            await listing.store_counts(connection, progress)


async def _unique(connection: AsyncConnection, progress: ErasureProgress) -> set[str]:
    """What the verification searches for, without what others said or were told too."""
    found = [text for text in progress.sought if not await rows_containing(connection, [text], SOURCES)]
    return set(found)
