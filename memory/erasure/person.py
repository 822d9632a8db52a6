"""Forgetting a person: everything of theirs, everywhere, and then looking whether it is gone.

In the record some rows at a time, each lot in one transaction with the work that takes it out of the index. A
crash in the middle leaves what is left for the next run. The messages go first: whatever is still being done
about one of them, here or in another process, finds it gone and keeps nothing (`missing`).
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Update, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.documents import DocumentLibrary
from memory.erasure.memories import NOBODY, owners_of, take_memories, theirs
from memory.erasure.messages import take_conversations, take_messages
from memory.erasure.personal_data import PEOPLES, rows_naming, rows_saying
from memory.erasure.receipt import Beside, Gone, Left, Scrub
from memory.erasure.receipt import Erased as Erased
from memory.erasure.removal import UNINDEX
from memory.errors import EmbedderUnavailable, IndexUnavailable
from memory.index import Index
from memory.index.sync import IndexSync
from memory.sql import tables
from memory.sql.engine import Database
from memory.sql.errors import Overtaken
from memory.sql.jobs import JobQueue

BATCH = 200
"""Rows that go in one transaction: nothing else is written meanwhile."""
PASSES = 5
"""So often it is begun again while the person goes on talking in another process."""
SAMPLE = 20
"""Texts that are looked for afterwards, the longest of what went."""
BUILT_ANEW = 10_000
"""Points of an embedded index that is built anew at once, which takes seconds; a larger one is left to the
operator."""
SHORTEST_SOUGHT = 12
"""Characters: who said no more than "good morning" is not found by it."""


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
        scrub: Scrub,
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
        self._scrub = scrub
        self._embedded = embedded
        """Both indexes are files of this process."""

    async def preview(self, user: str) -> dict[str, int]:
        """What `erase` would take away now, by kind; nothing is changed."""
        key, t = user_key(user), tables
        counted: dict[str, ColumnElement[bool]] = {
            "memories": t.memories.c.id.in_(theirs(user).order_by(None)),
            "messages": t.messages.c.user_id == user,
            "summaries": t.active_conversations.c.owner == key,
            **{kind: of for kind, (_, of) in _plain_rows(user).items()},
            "documents": t.knowledge_documents.c.owner == key,
        }
        async with self._database.read() as connection:
            found = {kind: await _how_many(connection, of) for kind, of in counted.items()}
        return {kind: count for kind, count in found.items() if count}

    async def erase(self, user: str, beside: Sequence[Beside] = ()) -> Erased:
        """Everything of the person's; `beside` takes away what is kept outside the record. To be called again
        where it was cut short. Raises StoreUnavailable; an index that is away is told in the receipt."""
        gone = Gone(user)
        for _ in range(PASSES):
            if not await self._pass(gone):
                break
        gone.chunks += await self._documents(gone)
        left = await self._out_of_the_index(gone)
        for act in beside:
            gone.removed.update(await act(gone))
        left += await self._look(gone)
        await self._out_of_the_file()
        removed = {kind: count for kind, count in gone.removed.items() if count}
        return Erased(user, self._clock(), removed, tuple(left), all(one.expected for one in left))

    async def _pass(self, gone: Gone) -> bool:
        """Whether there was anything: what came in between goes with the next one."""
        before = gone.removed.total()
        await self._rows(gone, only="work")  # first: nobody begins it any more
        while await self._retried(self._some_messages, gone):
            pass
        while await self._retried(self._some_memories, gone):
            pass
        await self._rows(gone)
        return gone.removed.total() > before

    async def _retried(self, step: Callable[[Gone], Any], gone: Gone) -> bool:
        """Somebody may say something new to the same memory at the same moment."""
        for tries in range(PASSES, 0, -1):
            try:
                return bool(await step(gone))
            except Overtaken:
                if tries == 1:
                    raise
        raise AssertionError("unreachable")  # pragma: no cover

    async def _some_messages(self, gone: Gone) -> bool:
        async with self._write() as connection:
            unsaid = await take_messages(connection, gone.user, BATCH, self._clock())
            work = await self._unindex(connection, unsaid.ids)
        gone.removed.update({"messages": len(unsaid.ids), "summaries of places": len(unsaid.summaries)})
        gone.points += unsaid.ids
        gone.said.update(unsaid.texts)
        gone.work += work
        return bool(unsaid.ids)

    async def _some_memories(self, gone: Gone) -> bool:
        async with self._database.read() as connection:
            ids = list((await connection.execute(theirs(gone.user).limit(BATCH))).scalars())
            lock = await owners_of(connection, ids) | {user_key(gone.user)}
        if not ids:
            return False
        async with self._write(lock) as connection:
            taken = await take_memories(connection, gone.user, ids, self._clock())
            work = await self._unindex(connection, list(taken.gone))
        gone.removed.update(
            {"memories": len(taken.gone), "memories shared": taken.left, "history": taken.steps}
        )
        gone.points += taken.gone
        gone.facts.update(taken.gone.values())
        gone.work += work
        return True

    async def _rows(self, gone: Gone, only: str | None = None) -> None:
        """What is the person's alone and needs no more than to be deleted, or ended."""
        user = gone.user
        async with self._write([f"tasks:{user}", f"context:{user}"]) as connection:
            for kind, (table, of) in _plain_rows(user).items():
                if only in (None, kind):
                    going = self._ended(of) if table is tables.api_keys else delete(table).where(of)
                    done = await connection.execute(going)
                    gone.removed[kind] += done.rowcount
            if only:
                return
            ids = await take_conversations(connection, user)
            gone.removed["summaries"] += len(ids)
            gone.points += ids
            gone.work += await self._unindex(connection, ids)
            await self._scrub_work(connection, gone)
            for column in (tables.places.c.changed_by, tables.memory_updates.c.user_id):
                unnamed = update(column.table).where(column == user)
                await connection.execute(unnamed.values({column.name: NOBODY}))

    def _ended(self, keys: ColumnElement[bool]) -> Update:
        """Keys end, and say no more whose they were. Their rows stay: as long as there is none, a server that
        only this machine can reach lets in whoever asks (`Keys.exist`)."""
        blank = {"name": "erased", "user_id": NOBODY, "digest": tables.api_keys.c.id, "last_used_at": None}
        ended = update(tables.api_keys).where(keys)
        return ended.values(**blank, revoked_at=self._clock())

    async def _scrub_work(self, connection: AsyncConnection, gone: Gone) -> None:
        """What waits to be done for others may hold what they were shown of the person."""
        work, ids = tables.work, set(gone.points)
        waiting = select(work.c.id, work.c.kind, work.c.user_id, work.c.payload)
        for piece in (await connection.execute(waiting.where(work.c.kind != UNINDEX))).all():
            clean = self._scrub(piece.kind, piece.user_id, piece.payload, ids)
            if clean is not None:
                same = update(work).where(work.c.id == piece.id)
                await connection.execute(same.values(payload=clean))

    async def _unindex(self, connection: AsyncConnection, ids: Sequence[str]) -> list[str]:
        """The work of taking these out of the index, which is nobody's: it outlives the person."""
        if not ids:
            return []
        return [await self._queue.add(connection, UNINDEX, NOBODY, {"ids": list(ids)}, self._clock())]

    async def _documents(self, gone: Gone) -> list[str]:
        chunks, documents = tables.knowledge_chunks, tables.knowledge_documents
        query = select(chunks.c.id).join(documents).where(documents.c.owner == user_key(gone.user))
        async with self._database.read() as connection:
            ids = list((await connection.execute(query)).scalars())
        gone.removed["documents"] += len(await self._knowledge.remove_all(user_key(gone.user)))
        return ids

    async def _out_of_the_index(self, gone: Gone) -> list[Left]:
        """Take it out, and draw anew what stood beside it; then look."""
        left = []
        try:
            await self._index.remove(gone.points)
            await self._queue.done(*gone.work)
            await self._indexing.catch_up()
            left += await self._out_of_its_files(gone)
            if still := await self._index.present(gone.points):
                left.append(Left("index", len(still), "it was put back meanwhile; run it again", False))
            if gone.chunks and (still := await self._knowledge_index.present(gone.chunks)):
                left.append(Left("index of documents", len(still), "it goes with the next look-up", False))
            gone.removed["index"] += len(gone.points) + len(gone.chunks)
        except (IndexUnavailable, EmbedderUnavailable) as error:
            left.append(Left("index", len(gone.points), f"it goes once this is mended: {error}", False))
        return left

    async def _out_of_its_files(self, gone: Gone) -> list[Left]:
        """The embedded engine only marks what is removed, and keeps it until it is built anew."""
        left = []
        parts = (
            (self._index, gone.points, self._indexing),
            (self._knowledge_index, gone.chunks, self._knowledge),
        )
        for index, ids, kept in parts:
            if not ids or not self._embedded:
                continue
            if await index.count() <= BUILT_ANEW:
                await index.wipe()
                await kept.catch_up()
            else:
                why = "nobody finds them; their numbers are in the index's files until `hachi reindex`"
                left.append(Left("index files", len(ids), why, True))
        return left

    async def _look(self, gone: Gone) -> list[Left]:
        """In every table: for the person's name where it stands for them, and for what they said."""
        texts = sorted(gone.said | gone.facts, key=len, reverse=True)
        sample = [text for text in texts if len(text) >= SHORTEST_SOUGHT][:SAMPLE]
        async with self._database.read() as connection:
            naming = await rows_naming(connection, gone.user)
            shared = [text for text in sample if await rows_saying(connection, [text], PEOPLES)]
            saying = await rows_saying(connection, shared, PEOPLES)
            made_of_it = await rows_saying(connection, set(sample).difference(shared))
        again = "something came in while it ran; run it again"
        others = "others said the same words, or were told them: they are theirs"
        return [
            *(Left(table, count, again, False) for table, count in (naming | made_of_it).items()),
            *(Left(table, count, others, True) for table, count in saying.items()),
        ]

    async def _out_of_the_file(self) -> None:
        """SQLite keeps what was written last in a file of its own, old texts too: it is emptied."""
        if self._database.sqlite:
            async with self._database.read() as connection:
                await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    @asynccontextmanager
    async def _write(self, lock: Collection[str] = ()) -> AsyncIterator[AsyncConnection]:
        """A write that leaves nothing readable in SQLite's file where rows were."""
        async with self._database.write(lock) as connection:
            if self._database.sqlite:
                await connection.exec_driver_sql("PRAGMA secure_delete=ON")
            yield connection


def _plain_rows(user: str) -> dict[str, tuple[Any, ColumnElement[bool]]]:
    """By kind: the table, and which of its rows are the person's."""
    t, key = tables, user_key(user)
    return {
        "work": (t.work, t.work.c.user_id == user),
        "tasks": (t.tasks, t.tasks.c.user_id == user),
        "context": (t.context_entries, t.context_entries.c.user_id == user),
        "keys": (t.api_keys, t.api_keys.c.user_id == user),
        "names": (t.speakers, t.speakers.c.owner == key),
        "person": (t.users, t.users.c.id == user),
    }


async def _how_many(connection: AsyncConnection, of: ColumnElement[bool]) -> int:
    return int((await connection.execute(select(func.count()).where(of))).scalar_one())
