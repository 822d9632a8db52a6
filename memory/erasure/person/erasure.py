"""Erases a person: deletes all that is theirs by ids and owner keys, and counts what has gone and what stays.

The first transaction stores who is being erased (`progress`). Every step deletes what it finds and may run
again, so a later call completes an interrupted erasure. What follows the person's ids where no row of theirs
leads comes first, while their rows tell the ids: files, traces, replies to others, and waiting jobs. Then
messages go before anything else: a process that still works on one of them finds it missing and stores
nothing (`memory.sql.messages.missing`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.documents.library import DocumentLibrary
from memory.erasure import memory_removal, message_removal, restore
from memory.erasure.person import own_rows, progress
from memory.erasure.person.memories import (
    NOBODY,
    erase_memories,
    memory_ids_of,
    owners_of,
    stated_alone,
)
from memory.erasure.person.messages import erase_conversations, erase_messages, forget_derived
from memory.erasure.person.progress import LEFT, SHARED, SHOWN, ErasureProgress
from memory.erasure.person.receipt import Erased, Remainder
from memory.erasure.person.replies import shown_replies
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.facts.derived import withhold
from memory.facts.echoes import echoes_of
from memory.index import Index
from memory.index.sync import IndexSync
from memory.sql import tables
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.jobs import JobQueue

BATCH = 200
"""Rows deleted in one transaction. Other writers wait for it."""
PASSES = 5
"""How often the deletion repeats while the person keeps talking in another process."""
AGAIN = "something came in while it ran; run it again"

CleanPayload = Callable[[str, str, dict[str, Any], Collection[str]], dict[str, Any]]
"""Called with (kind, user, payload, ids): returns another user's job payload without these memories and
messages."""


class Outside(Protocol):
    """Erases the person where SQL and the indexes do not reach. Every step may run again."""

    async def places(self, user: str) -> Collection[str]:
        """The keys of further places where they spoke."""
        ...

    async def clean(self, found: ErasureProgress) -> None:
        """Delete their lines in files and their traces, and those of others by ids, and count them."""
        ...

    async def rewrite(self) -> None:
        """Rewrite the files of other databases, in which parts of deleted rows may stand."""
        ...

    def out_of_reach(self) -> Sequence[str]:
        """What else may hold their data."""
        ...


@dataclass(eq=False)
class Erasure:
    database: Database
    queue: JobQueue
    indexing: IndexSync
    index: Index
    knowledge: DocumentLibrary
    clock: Callable[[], datetime]
    clean_payload: CleanPayload
    outside: Outside

    async def preview(self, user: str) -> dict[str, int]:
        """How many rows `erase` would delete from the database now, by kind. Changes nothing."""
        async with self.database.read() as connection:
            return await own_rows.count(connection, user)

    async def unfinished(self) -> list[tuple[str, bool]]:
        """The people whose erasure is running or was interrupted, and whether each has spoken since."""
        async with self.database.read() as connection:
            return await progress.unfinished(connection)

    async def erase(self, user: str) -> Erased:
        """Delete all data of the person. A later call completes an interrupted one, and its receipt counts
        what both removed. The receipt names an unavailable index. Raises StoreUnavailable."""
        places = await self.outside.places(user)
        async with self.database.write(lock=[f"erase:{user}"]) as connection:
            found = await progress.begin(connection, user, places, self.clock())
        await self.outside.clean(found)
        for _ in range(PASSES):
            if not await self._pass(found):
                break
        await self._delete_documents(found)
        left = await self._clean_index(found)
        await self.outside.clean(found)  # once more, for what came in meanwhile
        kinds = (await self.preview(user)).items()
        left += [Remainder(kind, count, AGAIN, False) for kind, count in kinds]
        await self._finish(found, done=not left)
        return self._receipt(found, left)

    async def _finish(self, found: ErasureProgress, *, done: bool) -> None:
        """Rewrite the files, in whose pages parts of rows that were moved may stand, and delete the erasure's
        row; or keep it for the next run."""
        if done:
            self.database.drop_copy()
            await self.database.vacuum()
            await self.outside.rewrite()
        async with self.database.write() as connection:
            await (progress.end(connection, found.user) if done else progress.store(connection, found))
        await self.database.empty_log()

    def _receipt(self, found: ErasureProgress, left: Sequence[Remainder]) -> Erased:
        counts = {kind: count for kind, count in found.counts.items() if count}
        stays = [Remainder(kind, counts.pop(kind), why, True) for kind, why in LEFT.items() if kind in counts]
        named = tuple(self.outside.out_of_reach())
        return Erased(found.user, self.clock(), counts, (*left, *stays), not left, named)

    async def _pass(self, found: ErasureProgress) -> bool:
        """Delete all rows that exist now. Returns whether any existed; the next pass deletes later ones."""
        before = found.counts.total()
        # First, so that no worker starts these jobs. The locks wait until replies in these places are stored
        # that were not checked against the erasure (`memory.facts.derived.replies`).
        async with self._stage(found, found.places) as connection:
            found.counts.update(await own_rows.delete_work(connection, found.user))
            await self._clean_jobs(connection, found)
        await self._forget_replies(found)
        await _retried(self._forget_echoes, found)
        for step in (self._message_batch, self._memory_batch):
            while await _retried(step, found):
                pass
        await self._rest(found)
        return found.counts.total() > before

    async def _forget_replies(self, found: ErasureProgress) -> None:
        """Empty the replies to others that contain what the person told, while their rows are there."""
        async with self.database.read() as connection:
            replies = await shown_replies(connection, found.user, found.places)
        async with self._stage(found) as connection:
            await withhold(connection, self.clock(), message_ids=replies.containing)
            await message_removal.empty(connection, replies.containing, self.clock())
            found.counts["replies"] += len(replies.containing)
            found.counts[SHOWN] = max(found.counts[SHOWN], replies.others)

    async def _forget_echoes(self, found: ErasureProgress) -> bool:
        """Delete the memories of others that rest on what the person told, while it is there."""
        told = select(tables.messages.c.id).where(tables.messages.c.user_id == found.user)
        known = select(tables.memories.c.id).where(tables.memories.c.user_id == found.user)
        sources = told.union(known)
        async with self.database.read() as connection:
            ids = [id for id, _ in await echoes_of(connection, sources, found.user)]
            lock = await owners_of(connection, ids)
        if not ids:
            return False
        async with self._stage(found, lock) as connection:
            echoes = [id for id, _ in await echoes_of(connection, sources, found.user)]
            await withhold(connection, self.clock(), memory_ids=echoes)
            gone = await memory_removal.delete_for_everybody(connection, echoes)
            found.gone(gone)
            found.counts["memories"] += len(gone)
        return True

    async def _message_batch(self, found: ErasureProgress) -> bool:
        async with self._stage(found) as connection:
            erased = await erase_messages(connection, found.user, BATCH, self.clock())
            found.gone(erased.ids)
            found.counts.update({"messages": len(erased.ids), "summaries of places": len(erased.summaries)})
        found.said.update(erased.texts)
        return bool(erased.ids)

    async def _memory_batch(self, found: ErasureProgress) -> bool:
        user = found.user
        async with self.database.read() as connection:
            ids = list((await connection.execute(memory_ids_of(user).limit(BATCH))).scalars())
            lock = await owners_of(connection, ids) | {user_key(user)}
        if not ids:
            return False
        async with self._stage(found, lock) as connection:
            alone = select(tables.memories.c.id).where(tables.memories.c.id.in_(ids), stated_alone(user))
            texts = await forget_derived(
                connection, list(await connection.scalars(alone)), user, self.clock()
            )
            erased = await erase_memories(connection, user, ids, self.clock())
            found.gone(erased.deleted)
            counts = {"summaries of places": len(texts)}
            counts |= {"memories": len(erased.deleted), SHARED: erased.shared, "history": erased.steps}
            found.counts.update(counts)
        return True

    async def _rest(self, found: ErasureProgress) -> None:
        """Delete the person's private conversations, the rows that are theirs alone, and their name in those
        of others."""
        user = found.user
        async with self._stage(found, [f"tasks:{user}", f"context:{user}"]) as connection:
            found.counts.update(await own_rows.delete_rows(connection, user, self.clock()))
            ids = await erase_conversations(connection, user)
            found.counts["summaries"] += len(ids)
            found.gone(ids)
            await self._clean_jobs(connection, found)
            await restore.drop_naming(connection, {user, user_key(user)}, found.ids, found.places)
            for column in (tables.places.c.changed_by, tables.memory_updates.c.user_id):
                unnamed = update(column.table).where(column == user)
                await connection.execute(unnamed.values({column.name: NOBODY}))

    async def _clean_jobs(self, connection: AsyncConnection, found: ErasureProgress) -> None:
        """Remove the person's messages and memories from the payloads of other people's waiting jobs."""
        work = tables.work
        waiting = select(work.c.id, work.c.kind, work.c.user_id, work.c.payload)
        for job in (await connection.execute(waiting)).all():
            clean = self.clean_payload(job.kind, job.user_id, job.payload, found.ids)
            if clean != job.payload:
                await connection.execute(update(work).where(work.c.id == job.id).values(payload=clean))

    async def _delete_documents(self, found: ErasureProgress) -> None:
        owner, documents = user_key(found.user), tables.knowledge_documents
        chunks = select(tables.knowledge_chunks.c.id).join(documents).where(documents.c.owner == owner)
        async with self._stage(found) as connection:
            found.gone(list(await connection.scalars(chunks)))
        found.counts["documents"] += len(await self.knowledge.remove_all(owner))

    async def _clean_index(self, found: ErasureProgress) -> list[Remainder]:
        """Let the index follow what was deleted, and copy what is left in it into new files."""
        if not found.counts["index"]:
            return []  # it may never have been made
        ids = sorted(found.ids)
        try:
            await self.indexing.catch_up()
            await self.index.remove(ids)  # another process may be the one that follows
            await self.index.compact()
            left = len(await self.index.present(ids))
        except (IndexUnavailable, EmbedderUnavailable) as error:
            why = f"it will be removed once this works again, and the erasure is run again: {error}"
            return [Remainder("index", found.counts["index"], why, False)]
        return [Remainder("index", left, AGAIN, False)] if left else []

    @asynccontextmanager
    async def _stage(
        self, found: ErasureProgress, lock: Collection[str] = ()
    ) -> AsyncIterator[AsyncConnection]:
        """A transaction that also stores what has been removed so far."""
        async with self.database.write(lock) as connection:
            yield connection
            await progress.store(connection, found)


async def _retried(step: Callable[[ErasureProgress], Awaitable[bool]], found: ErasureProgress) -> bool:
    """Run the step, and run it again while others write to the same memories."""
    for _ in range(PASSES - 1):
        try:
            return await step(found)
        except Overtaken:
            continue
    return await step(found)
