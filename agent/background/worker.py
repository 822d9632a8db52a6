"""Step 5 of a turn: what is done after the reply, from the durable queue.

Each kind of work has a handler that is safe to run twice. A crash leaves the work in the queue; the next
start, or another replica, does it. Several pieces are done at a time, since looking back waits for a model,
but those of one person one after the other.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from agent.background.consolidation import (
    APPLY_UPDATES,
    Consolidation,
    look_back,
    store_updates,
)
from agent.tracing.recorder import Recorder
from agent.turn.jobs import LOOK_BACK, STORE_MEMORIES, read_store_memories
from memory.erasure.removal import UNINDEX
from memory.errors import MemoryFault
from memory.facts.writer import FactWriter
from memory.index import Index
from memory.index.sync import IndexSync
from memory.records import Decision
from memory.search.recall import Recall
from memory.spans import unrecorded
from memory.sql.jobs import Job, JobQueue

log = logging.getLogger("hachi.worker")

GRACE = 5.0
"""Seconds that what is being done may still take when the companion closes."""
AT_ONCE = 8
"""Pieces of work that are done at a time."""

TRACED = frozenset({STORE_MEMORIES, LOOK_BACK, APPLY_UPDATES})
"""Work of a turn, which tells of what became of it."""

AtWork = dict[asyncio.Task[Any], Job]


class Worker:
    def __init__(
        self,
        queue: JobQueue,
        writer: FactWriter,
        consolidation: Consolidation,
        indexing: IndexSync,
        recall: Recall,
        index: Index,
        clock: Callable[[], datetime],
        recorder: Recorder,
    ) -> None:
        self._recorder = recorder
        self._queue = queue
        self._writer = writer
        self._consolidation = consolidation
        self._indexing = indexing
        self._recall = recall
        self._index = index
        self._clock = clock
        self._running: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._stopped = False
        self._looking: dict[str, bool] = {}
        """The conversations that are being looked back at, and whether they are to be again."""
        self._doing: set[asyncio.Task[list[Decision]]] = set()

    def wake(self) -> None:
        """There is something to do: do it in the background."""
        if self._stopped:
            return
        self._woken.set()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run(), name="hachi worker")

    async def settle(self) -> None:
        """Until everything that is due has been done. What failed and waits for another try is left."""
        self.wake()
        while self._running is not None and not self._running.done():
            await asyncio.shield(self._running)
        await asyncio.gather(*self._doing, return_exceptions=True)

    async def do(self, id: str) -> list[Decision]:
        """A piece of work of ours, now; what it decided. Empty when it has been done, or has to wait: the
        reply that it belongs to is out already, and is not to fail for it."""
        doing = asyncio.create_task(self._do(id))
        self._doing.add(doing)
        doing.add_done_callback(self._doing.discard)
        return await asyncio.shield(doing)

    async def _do(self, id: str) -> list[Decision]:
        try:
            piece = await self._queue.take(id)
            return await self._handle(piece) if piece else []
        except MemoryFault as error:
            log.warning("background work waits: %s", error)
            return []

    async def stop(self) -> None:
        """Finish what is being done, and no more; what takes longer than `GRACE` is broken off. It is in the
        queue, and so is the rest."""
        self._stopped = True
        self._woken.set()
        running = [*self._doing, *([self._running] if self._running else [])]
        if running:
            await asyncio.wait(running, timeout=GRACE)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self) -> None:
        """Until nothing is left to do. The task is looked at and replaced without a pause in between, so a
        wake that comes while it ends is not lost."""
        while self._woken.is_set():
            self._woken.clear()
            try:
                await self._work_off()
            except MemoryFault as error:
                log.warning("background work waits: %s", error)
            except Exception:
                log.exception("background work failed; the next turn, or the schedule, starts it again")

    async def _work_off(self) -> None:
        at_work: AtWork = {}
        changed = True
        try:
            while not self._stopped:
                if piece := await self._next(at_work):
                    at_work[asyncio.create_task(self._handle(piece))] = piece
                    changed = True
                    continue
                if changed:
                    await self._bring_up_to_date()
                    changed = False
                elif not at_work:
                    return
                else:
                    await self._first_of(at_work)
                    changed = True
        finally:
            await _ended(at_work)

    async def _next(self, at_work: AtWork) -> Job | None:
        """Looking back waits for a model, so it has places of its own and keeps nothing else waiting. Of one
        person nothing else is done at the same time, and what was kept is known when it is looked back at."""
        quick = {piece.user_id for piece in at_work.values() if piece.kind != LOOK_BACK}
        slow = {piece.user_id for piece in at_work.values() if piece.kind == LOOK_BACK}
        return await self._queue.claim(
            self._clock(),
            slow=LOOK_BACK,
            besides=quick if len(quick) < AT_ONCE else None,
            slow_besides=quick | slow if len(slow) < AT_ONCE else None,
        )

    async def _bring_up_to_date(self) -> None:
        await self._indexing.try_to_catch_up()
        await self._recall.note_uses()

    async def _first_of(self, at_work: AtWork) -> None:
        """Until a piece is done, or there are more of them."""
        woken = asyncio.create_task(self._woken.wait())
        try:
            done, _ = await asyncio.wait([*at_work, woken], return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        if woken in done:
            self._woken.clear()
        for task in done - {woken}:
            del at_work[task]
            task.result()

    async def _handle(self, piece: Job) -> list[Decision]:
        try:
            with self._recorder.work(piece) if piece.kind in TRACED else unrecorded():
                decisions = await self._dispatch(piece)
        except Exception as error:
            log.warning("work %s (%s) failed, attempt %d: %s", piece.id, piece.kind, piece.attempts, error)
            await self._queue.failed(piece, f"{type(error).__name__}: {error}", self._clock())
            return []
        if decisions is None:
            return []
        await self._queue.done(piece.id)
        return decisions

    async def _dispatch(self, piece: Job) -> list[Decision] | None:
        """What was decided; None where somebody else will have done it."""
        if piece.kind == STORE_MEMORIES:
            drafts, origin = read_store_memories(piece)
            decisions = await self._writer.remember(drafts, origin)
            return decisions + await self._writer.note_names(origin, piece.payload["speaker"])
        if piece.kind == LOOK_BACK:
            return await self._look_back(piece)
        if piece.kind == APPLY_UPDATES:
            return await store_updates(self._consolidation, piece)
        if piece.kind == UNINDEX:
            await self._index.remove(piece.payload["ids"])
            return []
        raise ValueError(f"no handler for work of the kind {piece.kind!r}")

    async def _look_back(self, piece: Job) -> list[Decision] | None:
        """Where turns come fast, whoever is looking back at the conversation already does so once more, with
        all that was said meanwhile, and takes this piece out of the queue when that is done."""
        about = str(piece.about)
        if about in self._looking:
            self._looking[about] = True
            return None
        decisions: list[Decision] = []
        self._looking[about] = True
        try:
            while self._looking[about]:
                self._looking[about] = False
                decisions += await look_back(self._consolidation, piece)
        finally:
            del self._looking[about]
        return decisions


async def _ended(at_work: AtWork) -> None:
    """What was begun is finished; where that is cut short, it is broken off and stays in the queue."""
    try:
        await asyncio.gather(*at_work, return_exceptions=True)
    except asyncio.CancelledError:
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)
        raise
