"""Erases a person: deletes all their data, then verifies that it is gone.

The database is erased in batches. Each batch is one transaction that also stores the job that removes the
batch from the index, so the next run completes an interrupted one. Messages are deleted first: a process that
still works on one of them finds it missing and stores nothing (`memory.sql.messages.missing`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from sqlalchemy import ColumnElement, Delete, Table, Update, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.documents import DocumentLibrary
from memory.erasure.forgetting import UNINDEX
from memory.erasure.person_memories import NOBODY, erase_memories, memory_ids_of, owners_of
from memory.erasure.person_messages import erase_conversations, erase_messages
from memory.erasure.personal_data import SOURCES, rows_containing, rows_naming
from memory.erasure.receipt import CleanPayload, Erased, ErasureProgress, OutsideStep, Remainder
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index
from memory.index.sync import IndexSync
from memory.sql import tables
from memory.sql.engine import Database
from memory.sql.errors import Overtaken
from memory.sql.jobs import JobQueue

BATCH = 200
"""Rows deleted in one transaction. Other writers wait for it."""
PASSES = 5
"""How often the deletion repeats while the person keeps talking in another process."""
SAMPLE = 20
"""How many of the deleted texts (the longest ones) the verification searches for."""
REBUILT_AT_ONCE = 10_000
"""An embedded index of at most so many points is rebuilt within seconds; a larger one by the operator."""
SHORTEST_SOUGHT = 12
"""The fewest characters of a text to search for. Shorter ones such as "good morning" identify nobody."""


class Erasure:
    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        indexing: IndexSync,
        index: Index,
        knowledge: DocumentLibrary,
        knowledge_index: Index,
        clock: Callable[[], datetime],
        clean_payload: CleanPayload,
        *,
        embedded: bool,
    ) -> None:
        self._database = database
        self._queue = queue
        self._indexing = indexing
        self._index = index
        self._knowledge = knowledge
        self._knowledge_index = knowledge_index
        self._clock = clock
        self._clean_payload = clean_payload
        self._embedded = embedded
        """Whether both indexes are files of this process."""

    async def preview(self, user: str) -> dict[str, int]:
        """How many rows `erase` would delete from the database now, by kind. Changes nothing."""
        key, t = user_key(user), tables
        counted: dict[str, ColumnElement[bool]] = {
            "memories": t.memories.c.id.in_(memory_ids_of(user).order_by(None)),
            "messages": t.messages.c.user_id == user,
            "summaries": t.active_conversations.c.owner == key,
            **{kind: condition for kind, (_, condition) in _own_rows(user).items()},
            "documents": t.knowledge_documents.c.owner == key,
        }
        found = {}
        async with self._database.read() as connection:
            for kind, condition in counted.items():
                found[kind] = (await connection.execute(select(func.count()).where(condition))).scalar_one()
        return {kind: count for kind, count in found.items() if count}

    async def erase(self, user: str, outside: Sequence[OutsideStep] = ()) -> Erased:
        """Delete all data of the person; `outside` deletes the data outside the database. A repeated call
        completes an interrupted one. The receipt names an unavailable index. Raises StoreUnavailable."""
        progress = ErasureProgress(user)
        for _ in range(PASSES):
            if not await self._pass(progress):
                break
        await self._delete_documents(progress)
        left = await self._clean_indexes(progress)
        for step in outside:
            progress.removed.update(await step(progress))
        left += await self._verify(progress)
        await self._empty_sqlite_log()
        removed = {kind: count for kind, count in progress.removed.items() if count}
        return Erased(user, self._clock(), removed, tuple(left), all(one.expected for one in left))

    # Deleting.

    async def _pass(self, progress: ErasureProgress) -> bool:
        """Delete all rows that exist now. Returns whether any existed; the next pass deletes later ones."""
        before = progress.removed.total()
        async with self._write() as connection:  # first, so that no worker starts these jobs
            await self._delete_own_rows(connection, progress, kinds=("work",))
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

    async def _message_batch(self, progress: ErasureProgress) -> bool:
        async with self._write() as connection:
            erased = await erase_messages(connection, progress.user, BATCH, self._clock())
            jobs = await self._add_unindex_job(connection, erased.ids)
        progress.removed.update({"messages": len(erased.ids), "summaries of places": len(erased.summaries)})
        progress.index_ids += erased.ids
        progress.messages.update(erased.texts)
        progress.jobs += jobs
        return bool(erased.ids)

    async def _memory_batch(self, progress: ErasureProgress) -> bool:
        user = progress.user
        async with self._database.read() as connection:
            ids = list((await connection.execute(memory_ids_of(user).limit(BATCH))).scalars())
            lock = await owners_of(connection, ids) | {user_key(user)}
        if not ids:
            return False
        async with self._write(lock) as connection:
            erased = await erase_memories(connection, user, ids, self._clock())
            jobs = await self._add_unindex_job(connection, list(erased.deleted))
        counts = {"memories": len(erased.deleted), "memories shared": erased.shared, "history": erased.steps}
        progress.removed.update(counts)
        progress.index_ids += erased.deleted
        progress.facts.update(erased.deleted.values())
        progress.jobs += jobs
        return True

    async def _rest(self, progress: ErasureProgress) -> None:
        """Delete the person's private conversations, the rows that are theirs alone, their name in others'
        rows, and their data in others' jobs."""
        user = progress.user
        async with self._write([f"tasks:{user}", f"context:{user}"]) as connection:
            await self._delete_own_rows(connection, progress)
            ids = await erase_conversations(connection, user)
            progress.removed["summaries"] += len(ids)
            progress.index_ids += ids
            progress.jobs += await self._add_unindex_job(connection, ids)
            await self._clean_jobs(connection, progress)
            for column in (tables.places.c.changed_by, tables.memory_updates.c.user_id):
                unnamed = update(column.table).where(column == user)
                await connection.execute(unnamed.values({column.name: NOBODY}))

    async def _delete_own_rows(
        self, connection: AsyncConnection, progress: ErasureProgress, kinds: Collection[str] | None = None
    ) -> None:
        for kind, (table, condition) in _own_rows(progress.user).items():
            if kinds is not None and kind not in kinds:
                continue
            statement: Delete | Update = delete(table).where(condition)
            if table is tables.api_keys:
                # Keys are revoked and anonymised. Their rows stay: while no key exists, a server that only
                # this machine can reach admits everybody (`Keys.exist`).
                blank = {"name": "erased", "user_id": NOBODY, "digest": table.c.id, "last_used_at": None}
                statement = update(table).where(condition).values(**blank, revoked_at=self._clock())
            progress.removed[kind] += (await connection.execute(statement)).rowcount

    async def _clean_jobs(self, connection: AsyncConnection, progress: ErasureProgress) -> None:
        """Remove the person's messages and memories from the payloads of other people's waiting jobs."""
        work, ids = tables.work, set(progress.index_ids)
        waiting = select(work.c.id, work.c.kind, work.c.user_id, work.c.payload)
        for job in (await connection.execute(waiting.where(work.c.kind != UNINDEX))).all():
            clean = self._clean_payload(job.kind, job.user_id, job.payload, ids)
            if clean is not None:
                await connection.execute(update(work).where(work.c.id == job.id).values(payload=clean))

    async def _add_unindex_job(self, connection: AsyncConnection, ids: Sequence[str]) -> list[str]:
        """Add a job that removes these points; returns its id. It has no user, so the erasure keeps it."""
        if not ids:
            return []
        return [await self._queue.add(connection, UNINDEX, NOBODY, {"ids": list(ids)}, self._clock())]

    async def _delete_documents(self, progress: ErasureProgress) -> None:
        owner, chunks, documents = (
            user_key(progress.user),
            tables.knowledge_chunks,
            tables.knowledge_documents,
        )
        query = select(chunks.c.id).join(documents).where(documents.c.owner == owner)
        async with self._database.read() as connection:
            progress.chunk_ids += (await connection.execute(query)).scalars()
        progress.removed["documents"] += len(await self._knowledge.remove_all(owner))

    async def _clean_indexes(self, progress: ErasureProgress) -> list[Remainder]:
        """Remove the person's points, index their neighbours again, and check that the points are gone."""
        ids, chunks = progress.index_ids, progress.chunk_ids
        left = []
        try:
            await self._index.remove(ids)
            await self._queue.done(*progress.jobs)
            await self._indexing.catch_up()
            left += await self._rebuild_embedded(progress)
            if found := await self._index.present(ids):
                left.append(Remainder("index", len(found), "it was put back meanwhile; run it again", False))
            if chunks and (found := await self._knowledge_index.present(chunks)):
                why = "the next search in documents removes it"
                left.append(Remainder("index of documents", len(found), why, False))
            progress.removed["index"] += len(ids) + len(chunks)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            why = f"it will be removed once this works again: {error}"
            left.append(Remainder("index", len(ids), why, False))
        return left

    async def _rebuild_embedded(self, progress: ErasureProgress) -> list[Remainder]:
        """Rebuild embedded indexes: their files keep points that were removed."""
        left = []
        for index, ids, source in (
            (self._index, progress.index_ids, self._indexing),
            (self._knowledge_index, progress.chunk_ids, self._knowledge),
        ):
            if not ids or not self._embedded:
                continue
            if await index.count() <= REBUILT_AT_ONCE:
                await index.wipe()
                await source.catch_up()
            else:
                why = "no search finds them; their numbers stay in the index's files until `hachi reindex`"
                left.append(Remainder("index files", len(ids), why, True))
        return left

    # Verifying.

    async def _verify(self, progress: ErasureProgress) -> list[Remainder]:
        """Search every table for the person's id and statements. Returns what is left."""
        texts = sorted(progress.texts, key=len, reverse=True)
        sample = [text for text in texts if len(text) >= SHORTEST_SOUGHT][:SAMPLE]
        async with self._database.read() as connection:
            naming = await rows_naming(connection, progress.user)
            shared = [text for text in sample if await rows_containing(connection, [text], SOURCES)]
            said_by_others = await rows_containing(connection, shared, SOURCES)
            derived = await rows_containing(connection, set(sample).difference(shared))
        again = "something came in while it ran; run it again"
        others = "others said or were told the same words, and those are theirs"
        return [
            *(Remainder(table, count, again, False) for table, count in (naming | derived).items()),
            *(Remainder(table, count, others, True) for table, count in said_by_others.items()),
        ]

    async def _empty_sqlite_log(self) -> None:
        """Empty SQLite's write-ahead log, which still holds deleted texts."""
        if self._database.sqlite:
            async with self._database.read() as connection:
                await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    @asynccontextmanager
    async def _write(self, lock: Collection[str] = ()) -> AsyncIterator[AsyncConnection]:
        """A transaction that overwrites deleted rows in SQLite's file."""
        async with self._database.write(lock) as connection:
            if self._database.sqlite:
                await connection.exec_driver_sql("PRAGMA secure_delete=ON")
            yield connection


def _own_rows(user: str) -> dict[str, tuple[Table, ColumnElement[bool]]]:
    """The table and condition of the rows that belong to the person alone, by kind."""
    t = tables
    return {
        "work": (t.work, t.work.c.user_id == user),
        "tasks": (t.tasks, t.tasks.c.user_id == user),
        "context": (t.context_entries, t.context_entries.c.user_id == user),
        "forgotten": (t.forgotten, t.forgotten.c.user_id == user),
        "keys": (t.api_keys, t.api_keys.c.user_id == user),
        "names": (t.speakers, t.speakers.c.owner == user_key(user)),
        "figures": (t.figures, t.figures.c.user_id == user),
        "person": (t.users, t.users.c.id == user),
    }
