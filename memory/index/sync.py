"""Lets the index follow the log of changes, and fills one that cannot follow.

A write does not wait for that, and a search a second at most: it reads from their rows what the index has not
followed yet (`waiting`), and wakes a task that goes on in the background. An index that is new, that was not
closed cleanly, that belongs to another embedder or that is behind the log's beginning is emptied and filled
from the rows and their stored vectors; meanwhile searches read the newest rows too.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile

from memory.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory.index import CHUNKS, KINDS, Index, Kind, vectors
from memory.index.embedders import Embedder, know_dimension
from memory.index.putting import RowPutter
from memory.index.rows import Ids, Rows
from memory.index.searching import RowSearch, Searching, Waiting
from memory.sql.changes import KEPT, START, Change, ChangeLog, Position, Unfollowed
from memory.sql.engine import Database

log = logging.getLogger("hachi.index")

BATCH = 256
"""Rows that are embedded and indexed at a time."""
MOST_WAITING = 256
"""Changes that a search reads beside the index. If more wait, it reads the newest rows instead."""
PATIENCE = 1.0
"""Seconds that a search waits for an index that has begun to open or to be filled."""
PAUSE = 0.5
"""Seconds within which changes are followed together."""
MOMENT = 0.25
"""Seconds that a search waits for an index on a server to follow what has just changed."""
BUILDING = "the index is being built from the database"
FILLED_ELSEWHERE = "another process fills the index"

Progress = Callable[[int], None]
"""Called with the number of rows that were indexed since the last call."""


class IndexSync:
    def __init__(
        self,
        database: Database,
        index: Index,
        embedder: Embedder,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._log = ChangeLog(database)
        self._rows = Rows(database)
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._lock = asyncio.Lock()
        self._putter = RowPutter(database, self._rows, index, embedder, clock)
        self._shown: dict[Position, bool] = {}
        """Of the changes that wait to be followed, those that the index shows: whether with their vectors."""
        self._filling_from: Position | None = None
        """While it fills the index: what comes after it in the log, the index may show as it was before."""
        self._woken = False
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._in_step = False
        """Whether the index has followed the log in this process, or another one sees to that."""
        self.behind: str | None = None
        """Why rows wait for the index; None if nothing keeps them out."""

        self.searching = Searching(
            index, self.waiting, self.note_unavailable, RowSearch(self._rows, embedder)
        )
        """Searches the index and the rows that wait for it; while it is away or behind, the newest rows."""

    async def catch_up(self, progress: Progress | None = None, *, anew: bool = False) -> int:
        """Follow the log to its end, or fill the index; with `anew` fill it in any case. Returns how many
        rows that were; none while another process does it. Raises IndexUnavailable or EmbedderUnavailable;
        the rest waits."""
        async with self._lock:
            self._woken = False  # what has been asked for so far is done here
            leads_on = not anew
            if self.behind or not self._in_step:
                await know_dimension(self._embedder)
                await self._index.ensure()
                leads_on = not anew and await self._leads_on()
            try:
                total = await self._follow(progress) if leads_on else None
                if total is None:
                    if not await self._index.lease():
                        return 0
                    total = 0
                    if anew or not await self._leads_on():  # another process may have filled it just now
                        total += await self._fill(progress)
                    total += await self._follow(progress) or 0
            finally:
                await self._index.release()
            self._in_step = True
        return total

    async def try_to_catch_up(self, progress: Progress | None = None) -> None:
        """Catch up; if the index or the embedder is unavailable, log it once."""
        try:
            await self.catch_up(progress)
            if self.behind:
                log.info("the index is up to date again")
            self.behind = None
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.note_unavailable(error)

    def wake(self, *, hurry: bool = False) -> "asyncio.Task[None]":
        """Follow what has changed in the background, in a moment or, in a `hurry`, now. Returns the task."""
        self._woken = True
        if hurry:
            self._hurried.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="hachi index")
        return self._task

    async def stop(self) -> None:
        """End what runs in the background, after a moment. The changes that are left wait."""
        if self._task is not None:
            if not self.behind:
                self._hurried.set()
                await asyncio.wait({self._task}, timeout=PATIENCE)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def note_unavailable(self, error: BaseException) -> None:
        """Note why rows wait for the index."""
        if self.behind is None:
            log.warning("the index waits, and searches read the newest rows of the database: %s", error)
        self.behind = str(error)

    async def waiting(
        self, patient: bool, kinds: frozenset[Kind] | None = None, without: frozenset[str] = frozenset()
    ) -> Waiting:
        """What a search for these `kinds` has to read beside the index. It waits a `MOMENT` for the index,
        and `PATIENCE` for one that opens or is filled. An index of this process first shows what has
        changed; one on a server is given the moment where the search is `patient`, because what is scored
        from the rows does not know how rare a word is among all. Rows that the search leaves out (`without`),
        such as the message that asks, are not waited for."""
        if not self._in_step or self.behind:
            await self._begin()
        try:
            followed, changes = await self._unfollowed()
            asked = [one for one in changes if one.id not in without and (not kinds or one.kind in kinds)]
            if not asked and len(changes) <= MOST_WAITING:
                changes = []
            elif self._index.in_process and len(changes) <= MOST_WAITING:
                followed, changes = await self._absorb(changes), []
            elif changes:
                following = self.wake(hurry=patient)
                if patient:
                    await asyncio.wait({following}, timeout=MOMENT)
                    followed, changes = await self._unfollowed()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.note_unavailable(error)
            followed, changes = None, []
        if followed is None or len(changes) > MOST_WAITING:
            return Waiting(_by_kind(changes), self.behind or BUILDING, await self._log.end())
        return Waiting(_by_kind(changes), None, followed)

    async def _unfollowed(self) -> Unfollowed:
        """Up to where the index has followed, and what it has not; None if it is not to be searched alone."""
        if self.behind or not self._in_step:
            return None, []
        return await self._index.unfollowed(self._log, MOST_WAITING + 1)

    async def _absorb(self, changes: Sequence[Change]) -> Position | None:
        """Show what has changed at once, as far as its vectors are known; the rest is embedded in the
        background. Returns up to where the index has followed; None if it was emptied meanwhile."""
        async with self._putter.lock:
            followed = await self._index.position()
            if followed is None:
                return None
            # Others, who waited here before, may have gone on from where the changes were read.
            changes = [change for change in changes if change.position > followed]
            new = [change for change in changes if change.position not in self._shown]
            complete = not (new and await self._putter.put_locked(_by_kind(new)))
            self._shown |= dict.fromkeys((change.position for change in new), complete)
            done = list(takewhile(lambda one: one.passed and self._shown[one.position], changes))
            if done:
                await self._advance(followed, done)
        if len(done) < len(changes):
            self.wake()
        return await self._index.position()

    async def due(self) -> int:
        """How many rows wait for the index. Raises IndexUnavailable."""
        await know_dimension(self._embedder)
        await self._index.ensure()
        position, changes = await self._index.unfollowed(self._log, KEPT)
        if position is None or not await self._leads_on():
            return await self.rows()
        return len({change.id for change in changes})

    async def rows(self) -> int:
        """How many points an index of all rows has."""
        return await self._rows.count(self._clock())

    async def purge(self) -> None:
        """Leave nothing of deleted rows in the files of the index, whoever follows the log or fills the index
        meanwhile. What is unavailable is logged."""
        try:
            await self.show_changes()
            await self._index.compact()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.note_unavailable(error)

    async def show_changes(self) -> None:
        """Show now what has changed, as far as its vectors are known, without advancing in the log. In an
        index on a server which this process does not fill, remove the points of deleted rows: the rest is up
        to whoever follows. Raises IndexUnavailable or EmbedderUnavailable."""
        await know_dimension(self._embedder)
        shown = self._filling_from or await self._index.position() or START
        changes = None
        while changes is None or len(changes) == BATCH:
            async with self._putter.lock:
                _, changes = await self._log.after(shown, BATCH)
                if self._index.in_process or self._filling_from:
                    await self._putter.put_locked(_by_kind(changes))
                else:
                    await self._index.remove(sorted(await self._rows.deleted(_by_kind(changes))))
                for change in takewhile(lambda one: one.passed, changes):
                    self._filling_from = self._filling_from and change.position
            shown = changes[-1].position if changes else shown

    async def left_of(self, ids: Collection[str]) -> set[str]:
        """Those of these rows that are deleted and that the index shows nevertheless. Raises
        IndexUnavailable."""
        left = await self._index.present(sorted(ids))
        for kind in KINDS | CHUNKS:
            left = await self._rows.deleted({kind: left})
        return left

    async def cut_log(self) -> None:
        """Shorten the log of changes."""
        await self._log.cut()

    async def optimise(self) -> None:
        """Shorten the files of the index. Raises IndexUnavailable."""
        await self._index.optimise()

    async def _begin(self) -> None:
        """Catch up in the background, and wait for that for a moment, unless it has been going on already."""
        if not self._lock.locked():
            await asyncio.wait({self.wake(hurry=True)}, timeout=PATIENCE)

    async def _run(self) -> None:
        while self._woken:
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    await self._hurried.wait()
            self._hurried.clear()
            try:
                if self._woken:
                    await self.try_to_catch_up()
            except StoreUnavailable as error:
                self.note_unavailable(error)
            except Exception as error:
                log.exception("following the log of changes failed")
                self.note_unavailable(error)

    async def _leads_on(self) -> bool:
        position = await self._index.position()
        return position is not None and await self._log.leads_on_from(position)

    async def _follow(self, progress: Progress | None) -> int | None:
        """Follow the log to its end. Returns how many rows that were; None if the index has to be filled."""
        total = 0
        while True:
            position, changes = await self._index.unfollowed(self._log, BATCH)
            if position is None:
                return None
            batch = [change for change in changes if change.passed]
            if not batch or not await self._index.lease():
                return total
            await self._putter.put_with_vectors(
                _by_kind(change for change in batch if not self._shown.get(change.position))
            )
            total += _count(_by_kind(batch))
            last = len(batch) < BATCH
            if not await self._advance(position, batch, release=last):
                continue  # it is somewhere else by now
            if progress:
                progress(len(batch))
            if last:
                return total

    async def _advance(
        self, since: Position | None, batch: Sequence[Change], *, release: bool = False
    ) -> bool:
        for change in batch:
            self._shown.pop(change.position, None)
        return await self._index.advance(since, batch[-1].position, release=release)

    async def _fill(self, progress: Progress | None) -> int:
        """Fill the emptied index from the rows. Where texts must be embedded first, which may take long, the
        words are put before."""
        async with self._putter.lock:
            end = self._filling_from = await self._log.end()
            self._shown.clear()
            await self._index.wipe()
            empty = await self._index.position()
            if not await self._index.lease():
                raise IndexUnavailable(FILLED_ELSEWHERE)
        try:
            total = await self._show_all(progress)
        finally:
            self._filling_from = None
        await vectors.forget_others(self._database, self._embedder.name)
        if not await self._index.advance(empty, end):
            raise IndexUnavailable(FILLED_ELSEWHERE)
        return total

    async def _show_all(self, progress: Progress | None) -> int:
        """Show every row. Returns how many there are."""
        total, lacking = 0, False
        async for ids in self._pages():
            lacks = bool(await self._putter.put(ids))
            total, lacking = total + _count(ids), lacking or lacks
            if progress and not lacks:
                progress(_count(ids))
        if lacking:
            async for ids in self._pages():
                if await self._putter.put_with_vectors(ids) and progress:
                    progress(_count(ids))
        return total

    async def _pages(self) -> AsyncIterator[Ids]:
        """All rows, so many at a time, as long as this process may fill the index."""
        async for ids in self._rows.pages(BATCH):
            if not await self._index.renew():
                raise IndexUnavailable(FILLED_ELSEWHERE)
            yield ids
            await self.show_changes()


def _by_kind(changes: Iterable[Change]) -> Ids:
    found: dict[Kind, dict[str, None]] = {}
    for change in changes:
        found.setdefault(change.kind, {})[change.id] = None  # type: ignore[arg-type]
    return {kind: list(ids) for kind, ids in found.items()}


def _count(ids: Ids) -> int:
    return sum(map(len, ids.values()))
