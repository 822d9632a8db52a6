"""The index in this process: Qdrant Edge, in a folder of its own.

Edge holds the GIL while it works, so a worker thread would free nobody. Short calls run on the event loop (a
put takes about 0.1 ms, a search of all four lanes under 1 ms); long ones are cut into slices with a pause for
the loop in between.

Vectors are compared exactly, with those of the reader's own owners only: under a millisecond for a thousand.
There is no HNSW graph, since building one blocks the process for longer than an index of this size can win
back. `memory.index.server` has one.

Every process has an index of its own (`folder`), and knows up to where it has followed the log of changes.
Writes stop while the disk has less room than `RESERVE`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index import Point, Question, Rankings, VectorSpace, fingerprint_of, schema
from memory.index.embedded import engine
from memory.index.embedded import folder as files
from memory.sql.changes import ChangeLog, Position, Unfollowed

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

log = logging.getLogger("hachi.index")

AT_A_TIME = 32
"""Points written or read before the event loop gets a turn: some 3 ms."""
COPIED_AT_ONCE = 64
"""Points that are copied before the event loop gets a turn: some 5 ms."""
POINT_BYTES = 8_000
"""The bytes of a point beside its vectors, generously."""


class EmbeddedIndex:
    """An index in the first of the folders in `parent` that no other process holds.

    `database` returns what tells the database from others, and `free` the free bytes on a folder's disk.
    """

    in_process = True

    def __init__(
        self,
        parent: Path,
        space: VectorSpace,
        database: Callable[[], Awaitable[str]],
        free: Callable[[Path], int] = files.free_bytes,
    ) -> None:
        self._parent = parent
        self._space = space
        self._database = database
        self._free = free
        self._of = ""
        self._position: Position | None = None
        self._opening = asyncio.Lock()
        self._folder_lock: files.Hold | None = None
        self._shard: EdgeShard | None = None
        self._copy: EdgeShard | None = None
        """While `compact` copies: every change is made in it too."""
        self._removed = False
        """Whether the files are to be copied (`compact`): they may hold points of deleted rows. With each row
        that is deleted its point is removed; that one was replaced alone is left to `optimise`."""

    @property
    def folder(self) -> Path:
        """Where it is, once it is open."""
        return self._folder_lock.folder if self._folder_lock else self._parent / "1"

    async def ensure(self) -> None:
        async with self._opened():
            pass

    async def position(self) -> Position | None:
        await self.ensure()
        return self._position

    async def lease(self) -> bool:
        return True

    async def unfollowed(self, log: ChangeLog, limit: int) -> Unfollowed:
        position = await self.position()
        return await log.after(position, limit) if position else (None, [])

    async def renew(self) -> bool:
        return True

    async def advance(self, since: Position | None, position: Position, *, release: bool = False) -> bool:
        if self._position != since:
            return False
        self._position = position
        return True

    async def release(self) -> None:
        """Does nothing: it is this process's own."""

    async def put(self, points: Sequence[Point]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(points, AT_A_TIME):
            async with self._opened() as shard:
                self._require_room()
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.upsert_points([engine.engine_point(point) for point in part]))
            await asyncio.sleep(0)

    async def remove(self, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        for part in schema.slices(ids, AT_A_TIME):
            async with self._opened() as shard:
                self._require_room()
                for one in filter(None, (shard, self._copy)):
                    one.update(UpdateOperation.delete_points(list(part)))
            self._removed = True
            await asyncio.sleep(0)

    async def search(self, *questions: Question) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        searches = schema.searches(questions)
        if not searches:
            return Rankings()
        async with self._opened() as shard:
            answers = shard.query_batch(QueryBatchRequest([engine.request(*search) for search in searches]))
        return schema.rankings([lane for _, lane, _ in searches], answers)

    async def count(self) -> int:
        from qdrant_edge import CountRequest

        async with self._opened() as shard:
            return shard.count(CountRequest(exact=True))

    async def present(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for part in schema.slices(ids, AT_A_TIME):
            async with self._opened() as shard:
                found.update(str(record.id) for record in shard.retrieve(list(part), False, False))
            await asyncio.sleep(0)
        return found

    async def advice(self) -> Sequence[str]:
        return ()

    async def optimise(self) -> None:
        """Free the space of removed points once they are a fifth of all, and delete the indexes that nobody
        holds. Blocks the process for some 0.2 s, plus 0.1 ms a point. Files that are far larger than their
        points need are copied (`compact`)."""
        async with self._opened() as shard:
            self._require_room(files.size(self.folder))
            shard.flush()
            shard.optimize()
            files.delete_unheld(self._parent)
        needed = await self.count() * (4 * self._space.dimension + POINT_BYTES)
        if files.size(self.folder) > 1.5 * needed + files.RESERVE / 4:
            self._removed = True  # of points that were replaced, the engine keeps the old ones
            await self.compact()

    async def compact(self) -> bool:
        """Copy all points into new files, some 0.1 ms a point, while the index stays in use: Edge keeps the
        payloads, ids and vectors of removed points in its segments, also after a flush and an
        optimisation. One that is being copied already is left to that."""
        async with self._opened() as shard:
            files.delete_unheld(self._parent)
            if self._copy is not None or not self._removed:
                return True
            target = self.folder / files.COPYING
            self._require_room(files.size(self.folder))
            files.clear(target)
            self._copy = copy = engine.create(target, self._space.dimension)
            self._removed = False
            pages = engine.copy_points(shard, copy, COPIED_AT_ONCE)
        try:
            while True:
                await asyncio.sleep(0)
                with self._translated():
                    if self._shard is not shard:
                        raise IndexUnavailable("the memory index was closed while it was compacted")
                    self._require_room()
                    if next(pages, self) is self:
                        break
        except BaseException:
            self._removed = True
            raise
        finally:
            self._copy = None
            copy.close()
        async with self._opening:  # who searches waits: to delete the old files takes long
            with self._translated():
                shard.close()
                self._shard = None
                target.rename(self.folder / files.COPIED)
                settling = asyncio.ensure_future(asyncio.to_thread(files.settle, self.folder))
                try:
                    await asyncio.shield(settling)
                finally:
                    await settling
                    self._shard = engine.load(self.folder)
        return True

    async def wipe(self) -> None:
        async with self._opening:
            await self._hold()
            with self._translated():
                self._position = None
                if self._shard is None or self._removed or self._shard.info().points_count:
                    self._create()

    async def close(self) -> None:
        """Release the index. One that has followed the log is opened again as it is."""
        async with self._opening:
            shard, self._shard = self._shard, None
            try:
                if shard is not None:
                    shard.flush()
                    points = shard.info().points_count
                    shard.close()
                    if self._position is not None:
                        state = {"of": self._of, "position": self._position, "removed": self._removed}
                        files.close_cleanly(self.folder, state | {"points": points})
            except BaseException as error:
                if not engine.is_engine_error(error):
                    raise
                log.warning(
                    "the memory index is filled again at the next start: %s", engine.first_line(error)
                )
            finally:
                self._let_go()

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[EdgeShard]":
        """The open shard. What the block does with it must not await."""
        if self._shard is None:
            async with self._opening:
                if self._shard is None:
                    await self._hold()
                    with self._translated():
                        self._load()
        assert self._shard is not None
        with self._translated():
            yield self._shard

    async def _hold(self) -> None:
        try:
            self._of = f"{await self._database()} {fingerprint_of(self._space)}"
        except StoreUnavailable as error:
            raise IndexUnavailable(f"the memory index waits for the database: {error}") from error
        with self._translated():
            if self._folder_lock is None:
                self._folder_lock = files.hold_first(self._parent)
                self._folder_lock.folder.mkdir(mode=0o700, exist_ok=True)

    def _let_go(self) -> None:
        held, self._folder_lock = self._folder_lock, None
        if held is not None:
            held.release()

    def _load(self) -> None:
        """Open the index that was closed cleanly, or make an empty one."""
        self._require_room()
        state: dict[str, Any] = files.open_cleanly(self.folder)
        if state.get("of") != self._of:
            self._create()
            return
        try:
            self._shard = engine.load(self.folder)
            left = self._shard.info().points_count
            broken = "" if left == state["points"] else f"{left} of {state['points']} points are left"
        except BaseException as error:
            if not engine.is_engine_error(error):
                raise
            broken = engine.first_line(error)
        if broken:
            log.warning("the memory index in %s is filled again: %s", self.folder, broken)
            self._create()
            return
        self._position, self._removed = Position(*state["position"]), bool(state["removed"])

    def _create(self) -> None:
        """Delete what is in the folder, and make an empty index there."""
        self._drop()
        files.clear(self.folder)
        self._require_room()
        self._shard = engine.create(self.folder, self._space.dimension)
        self._removed = False

    def _drop(self) -> None:
        """Close a shard that is not to be used any more. The next one is made anew."""
        shard, self._shard, self._position = self._shard, None, None
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
                f"the disk of {self._parent} is nearly full: the memory index waits until "
                f"{(files.RESERVE + needed) // 1_000_000} MB are free; nothing that is remembered is lost"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # as where the folder was deleted, and with it what keeps others out
            self._drop()
            self._let_go()
            reason = error.strerror or error
            raise IndexUnavailable(f"the memory index cannot be kept in {self._parent}: {reason}") from error
        except BaseException as error:
            if not engine.is_engine_error(error):
                raise
            self._drop()
            raise IndexUnavailable(
                f"the memory index in {self.folder} cannot be used ({engine.first_line(error)}); it is "
                "filled again at the next search; nothing that is remembered is lost"
            ) from error
