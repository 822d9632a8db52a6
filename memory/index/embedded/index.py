"""The index in this process: Qdrant Edge, in a folder of its own.

Edge holds the GIL while it works, so a worker thread would free nobody. Short calls run on the event loop (a
put takes about 0.1 ms, a search of all four lanes under 1 ms); long ones are cut into slices with a pause for
the loop in between. Edge's write-ahead log survives a kill of the process, so a put does not flush.

Vectors are compared exactly, with those of the reader's own owners only: under a millisecond for a thousand.
There is no HNSW graph, since building one blocks the process for longer than an index of this size can win
back. `memory.index.server` has one.

Nothing in the folder is trusted (`folder`): what is damaged or unfinished is deleted and made anew, as a new
generation, so that every row is due again. Writes stop while the disk has less room than `RESERVE`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from memory.errors import IndexUnavailable
from memory.index import Point, Question, Rankings, VectorSpace, fingerprint_of, nobody_else, schema
from memory.index.embedded import compacting, engine
from memory.index.embedded import folder as files

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

log = logging.getLogger("hachi.index")

SLICE = 32
"""Points written or read before the event loop gets a turn: some 3 ms."""
POINT_BYTES = 8_000
"""The bytes of a point beside its vectors, generously."""


class EmbeddedIndex:
    """An index in a folder, which one process can open at a time.

    `alone` raises IndexUnavailable while another process keeps its own index of the same database. `free`
    returns the free bytes on a folder's disk.
    """

    def __init__(
        self,
        folder: Path,
        space: VectorSpace,
        alone: Callable[[], Awaitable[None]] = nobody_else,
        free: Callable[[Path], int] = files.free_bytes,
    ) -> None:
        self.folder = folder
        self._space = space
        self._alone = alone
        self._free = free
        self._generation = ""
        self._opening = asyncio.Lock()
        self._held: files.Hold | None = None
        self._shard: EdgeShard | None = None
        self._copy: EdgeShard | None = None
        """While `compact` copies: every change is made in it too."""

    async def put(self, points: Sequence[Point]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(points, SLICE):
            async with self._opened() as shard:
                self._require_room()
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.upsert_points([engine.engine_point(point) for point in part]))
            await asyncio.sleep(0)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(ids, SLICE):
            async with self._opened() as shard:
                self._require_room()
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.delete_points(list(part)))
            await asyncio.sleep(0)

    async def search(self, question: Question) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        lanes = schema.lanes(question)
        if not lanes:
            return Rankings()
        async with self._opened() as shard:
            answers = shard.query_batch(QueryBatchRequest(engine.requests(question, lanes)))
        return schema.rankings(lanes, answers)

    async def count(self) -> int:
        from qdrant_edge import CountRequest

        async with self._opened() as shard:
            return shard.count(CountRequest(exact=True)) - 1  # the marker

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, SLICE):
            async with self._opened() as shard:
                found.update(str(record.id) for record in shard.retrieve(list(part), False, False))
            await asyncio.sleep(0)
        return found

    async def differing(self, points: Sequence[Point]) -> set[str]:
        async with self._opened() as shard:
            records = shard.retrieve([point.id for point in points], True, True)
        return schema.differing(points, records)

    async def owned_by(self, owner: str) -> list[str]:
        from qdrant_edge import ScrollRequest

        wanted, found, after = engine.matching([schema.owned_by(owner)]), list[str](), None
        while True:
            async with self._opened() as shard:
                records, after = shard.scroll(ScrollRequest(offset=after, limit=SLICE, filter=wanted))
            found += [str(record.id) for record in records]
            if after is None:
                return found
            await asyncio.sleep(0)

    async def refresh(self) -> str:
        await self._alone()
        async with self._opened():
            return self._generation

    async def obsolete(self) -> list[str]:
        return []

    async def optimise(self) -> None:
        """Flush, which shortens the log that the next start reads, and free the space of removed points once
        they are a fifth of all. Blocks the process for some 0.2 s, plus 0.1 ms a point. Files that are far
        larger than their points need are copied (`compact`)."""
        async with self._opened() as shard:
            self._require_room(files.size(self.folder))
            shard.flush()
            shard.optimize()
        needed = await self.count() * (8 * self._space.dimension + POINT_BYTES)
        if files.size(self.folder) > 1.5 * needed + files.RESERVE / 4:
            await self.compact()

    async def compact(self) -> bool:
        """Copy all points into new files, some 0.1 ms a point, while the index stays in use. One that is
        being compacted already is left to that."""
        target = self.folder / compacting.COPYING
        async with self._opened() as shard:
            if self._copy is not None:
                return True
            compacting.delete(target)  # of a process that was killed meanwhile
            self._require_room(files.size(self.folder))
            target.mkdir(mode=0o700)
            self._copy = copy = engine.create(target, self._space.dimension)
            pages = compacting.copy_points(shard, copy)
        try:
            while True:
                with self._translated():
                    if self._shard is not shard:
                        raise IndexUnavailable("the memory index was closed while it was compacted")
                    self._require_room()
                    if next(pages, self) is self:
                        break
                await asyncio.sleep(0)
        finally:
            self._copy = None
            copy.close()
        with self._translated():
            shard.close()
            self._shard = None
            target.rename(self.folder / compacting.COPIED)
            self._load()
        return True

    async def wipe(self) -> None:
        async with self._opening:
            with self._translated():
                await self._hold()
                self._create()

    async def close(self) -> None:
        async with self._opening:
            shard, self._shard = self._shard, None
            try:
                if shard is not None:
                    shard.close()
                    files.seal(self.folder)
            except BaseException as error:
                if not engine.is_engine_error(error):
                    raise
                log.warning("the memory index is checked at the next start: %s", engine.first_line(error))
            finally:
                self._release()

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[EdgeShard]":
        """The open shard. What the block does with it must not await."""
        if self._shard is None:
            async with self._opening:
                if self._shard is None:
                    with self._translated():
                        await self._open()
        assert self._shard is not None
        with self._translated():
            yield self._shard

    async def _open(self) -> None:
        await self._hold()
        try:
            self._require_room()
            if files.is_empty(self.folder) or not await self._load_sound():
                self._create()
        finally:
            if self._shard is None:
                self._release()

    async def _load_sound(self) -> bool:
        """Load the index, unless it is damaged, unfinished or made for vectors of another kind."""
        sealed = files.break_seal(self.folder)
        compacting.settle(self.folder)
        damage = None if sealed else await files.damage(self.folder)
        try:
            if damage is None:
                return self._load()
        except BaseException as error:
            if not engine.is_engine_error(error):
                raise
            damage = engine.first_line(error)
        if files.HELD in damage:
            raise files.in_use(self.folder)
        log.warning(
            "the memory index in %s is damaged (%s); it is rebuilt from the database", self.folder, damage
        )
        return False

    def _load(self) -> bool:
        """Open the folder's shard. False if it is incomplete or made for vectors of another kind."""
        from qdrant_edge import EdgeShard

        fingerprint = fingerprint_of(self._space)
        compacting.settle(self.folder)
        self._shard = EdgeShard.load(str(self.folder))
        records = self._shard.retrieve([engine.MARKER], True, False)
        marker = (records[0].payload if records else None) or {}
        self._generation = marker.get("generation", "")
        return bool(marker.get("fingerprint") == fingerprint)

    def _create(self) -> None:
        """Delete what is in the folder, and make an empty index there."""
        from qdrant_edge import Point as EnginePoint
        from qdrant_edge import UpdateOperation

        fingerprint = fingerprint_of(self._space)  # fails while the embedder's dimension is unknown
        self._drop()
        files.clear(self.folder)
        self._require_room()
        shard = engine.create(self.folder, self._space.dimension)
        generation = str(uuid4())
        payload = {"generation": generation, "fingerprint": fingerprint}
        # Last, so that an index whose creation was interrupted has no marker and is created again.
        shard.update(UpdateOperation.upsert_points([EnginePoint(engine.MARKER, {}, payload)]))
        self._shard, self._generation = shard, generation

    async def _hold(self) -> None:
        if self._held is None:
            await self._alone()
            files.make(self.folder)
            self._held = files.Hold(self.folder)

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def _drop(self) -> None:
        """Close a shard that is not to be used any more. It is not sealed: the next opening checks it."""
        shard, self._shard = self._shard, None
        try:
            if shard is not None:
                shard.close()
        except BaseException as error:
            if not engine.is_engine_error(error):
                raise

    def _require_room(self, needed: int = 0) -> None:
        free = self._free(self.folder)
        if free < files.RESERVE + needed:
            raise IndexUnavailable(
                f"the disk of {self.folder} is nearly full: the memory index waits until "
                f"{(files.RESERVE + needed) // 1_000_000} MB are free; nothing that is remembered is lost"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise IndexUnavailable(f"the memory index cannot be kept in {self.folder}: {reason}") from error
        except BaseException as error:
            if not engine.is_engine_error(error):
                raise
            self._drop()
            raise IndexUnavailable(
                f"the memory index in {self.folder} cannot be used ({engine.first_line(error)}); it is "
                "checked and, if it is damaged, rebuilt at the next search; nothing that is remembered "
                "is lost"
            ) from error
