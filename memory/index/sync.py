"""Lets the index follow the log of changes, and fills one that cannot follow.

Nobody waits for that: a search reads from their rows what the index has not followed yet (`waiting`), and
wakes a task that goes on in the background. An index that is new, that was not closed cleanly, that belongs
to another embedder or that is behind the log's beginning is emptied and filled from the rows and their stored
vectors; meanwhile searches read the newest rows too.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from memory.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory.index import Index, Kind, vectors
from memory.index.embedders import Embedder, know_dimension
from memory.index.rows import Rows
from memory.index.searching import RowSearch, Searching, Waiting
from memory.sql.changes import Change, ChangeLog, Position
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript
from memory.sql.summaries import ConversationSummaries

log = logging.getLogger("hachi.index")

BATCH = 256
"""Rows that are embedded and indexed at a time."""
MOST_WAITING = 256
"""Changes that a search reads beside the index. If more wait, it reads the newest rows instead."""
PATIENCE = 1.0
"""Seconds that a search waits for an index that has begun to open or to be filled."""
PAUSE = 0.05
"""Seconds within which changes are followed together."""
MOMENT = 0.25
"""Seconds that a search waits for an index on a server to follow what has just changed."""
BUILDING = "the index is being built from the database"

Progress = Callable[[int], None]
"""Called with the number of rows that were indexed since the last call."""


class IndexSync:
    def __init__(
        self,
        store: MemoryStore,
        transcript: Transcript,
        index: Index,
        embedder: Embedder,
        clock: Callable[[], datetime],
        conversations: ConversationSummaries,
    ) -> None:
        self._database = store.database
        self._log = ChangeLog(store.database)
        self._rows = Rows(store, transcript, conversations)
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._lock = asyncio.Lock()
        self._putting = asyncio.Lock()
        self._absorbed: set[Position] = set()
        """The changes that wait to be followed, and that the index shows already."""
        self._woken = False
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fits = False
        """Whether the index has followed the log in this process, or another one sees to that."""
        self.behind: str | None = None
        """Why rows wait for the index; None if nothing keeps them out."""

        self.searching = Searching(index, self.waiting, self.wait, RowSearch(self._rows, embedder))
        """Searches the index and the rows that wait for it; while it is away or behind, the newest rows."""

    async def catch_up(self, progress: Progress | None = None, *, anew: bool = False) -> int:
        """Follow the log to its end, or fill the index; with `anew` fill it in any case. Returns how many
        rows that were; none while another process does it. Raises IndexUnavailable or EmbedderUnavailable;
        the rest waits."""
        async with self._lock:
            if self.behind or not self._fits:
                await know_dimension(self._embedder)
                await self._index.ensure()
            total = 0
            try:
                if anew or not await self._leads_on():
                    if not await self._index.lease(self._clock()):
                        return 0
                    if anew or not await self._leads_on():  # another process may have filled it just now
                        total += await self._fill(progress)
                total += await self._follow(progress)
            finally:
                await self._index.release()
            self._fits = True
        return total

    async def try_to_catch_up(self, progress: Progress | None = None) -> None:
        """Catch up; if the index or the embedder is unavailable, log it once."""
        try:
            await self.catch_up(progress)
            if self.behind:
                log.info("the index is up to date again")
            self.behind = None
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.wait(error)

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
                await asyncio.wait({self._task}, timeout=PATIENCE)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wait(self, error: BaseException) -> None:
        """Note why rows wait for the index."""
        if self.behind is None:
            log.warning("the index waits, and searches read the newest rows of the database: %s", error)
        self.behind = str(error)

    async def waiting(self, patient: bool) -> Waiting:
        """What a search has to read beside the index, which it does not wait for for long. An index of this
        process first shows what has changed; one on a server is given a moment for that, where the search is
        `patient`: what is scored from the rows does not know how rare a word is among all."""
        if not self._fits or self.behind:
            await self._begin()
        try:
            followed, changes = await self._changes()
            if changes and len(changes) <= MOST_WAITING and self._index.in_process:
                await self._absorb(changes)
                changes = []
            elif changes and patient:
                await asyncio.wait({self.wake(hurry=True)}, timeout=MOMENT)
                followed, changes = await self._changes()
        except (IndexUnavailable, EmbedderUnavailable) as error:
            self.wait(error)
            followed = None
        if followed is None:
            return Waiting({}, self.behind or BUILDING)
        return Waiting(_by_kind(changes), BUILDING if len(changes) > MOST_WAITING else None, followed)

    async def _changes(self) -> tuple[Position | None, list[Change]]:
        """Up to where the index has followed, and what it has not; None if it is not to be searched alone."""
        position = await self._index.position() if self._fits else None
        if position is None or self.behind:
            return None, []
        changes = await self._log.after(position, MOST_WAITING + 1)
        if changes:
            self.wake()
        return position, changes

    async def _absorb(self, changes: Sequence[Change]) -> None:
        """Show what has changed at once, as far as its vectors are known, and before it is followed."""
        if new := [change for change in changes if change.position not in self._absorbed]:
            await self._put(_by_kind(new))
        self._absorbed = {change.position for change in changes}

    async def due(self) -> int:
        """How many rows wait for the index. Raises IndexUnavailable."""
        await know_dimension(self._embedder)
        await self._index.ensure()
        if not await self._leads_on():
            return await self.rows()
        position = await self._index.position()
        found = await self._log.after(position, BATCH * BATCH) if position else []
        return len({change.id for change in found})

    async def rows(self) -> int:
        """How many points an index of all rows has."""
        return await self._rows.count(self._clock())

    async def purge(self) -> None:
        """Leave nothing of removed rows in the files of the index. What is unavailable is logged."""
        await self.try_to_catch_up()
        try:
            await self._index.compact()
        except IndexUnavailable as error:
            self.wait(error)

    async def tidy(self) -> None:
        """Shorten the log and the files of the index. Raises IndexUnavailable."""
        await self._log.cut()
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
            self._woken = False
            self._hurried.clear()
            try:
                await self.try_to_catch_up()
            except StoreUnavailable as error:
                self.wait(error)
            except Exception as error:
                log.exception("following the log of changes failed")
                self.wait(error)

    async def _leads_on(self) -> bool:
        position = await self._index.position()
        return position is not None and await self._log.leads_on_from(position)

    async def _follow(self, progress: Progress | None) -> int:
        total = 0
        position = await self._index.position()
        while position is not None and (batch := await self._log.passed(position, BATCH)):
            if not await self._index.lease(self._clock()):
                break
            total += await self._show(batch)
            if not await self._index.advance(batch[-1].position):
                break
            position = await self._index.position()
            if progress:
                progress(len(batch))
        return total

    async def _show(self, batch: Sequence[Change]) -> int:
        """Put the points of these rows, and remove those of rows that are gone or that nobody may read. What
        must be embedded first is found by its words until then."""
        ids = _by_kind(batch)
        if lacking := await self._put(ids):
            await vectors.make(self._database, self._embedder, lacking)
            await self._put(ids)
        return sum(map(len, ids.values()))

    async def _put(self, ids: Mapping[Kind, Sequence[str]]) -> vectors.Texts:
        """Show these rows as they are now. Returns the texts whose vectors are lacking."""
        async with self._putting:  # or an older state of a row could be put last
            drafts = await self._rows.shown(ids, self._clock())
            points, lacking = await vectors.points(self._database, self._embedder, drafts)
            await self._index.put(points)
            gone = {id for some in ids.values() for id in some} - {point.id for point in points}
            await self._index.remove(sorted(gone))
        if gone:
            await vectors.forget(self._database, sorted(gone))  # one was deleted while it was embedded
        return lacking

    async def _fill(self, progress: Progress | None) -> int:
        """Fill the emptied index from the rows. Where texts must be embedded first, which may take long, the
        words are put before."""
        end = await self._log.end()
        await self._index.wipe()
        total, complete = await self._put_all(progress)
        if not complete:
            await self._put_all(progress, embed=True)
        await vectors.forget_others(self._database, self._embedder.name)
        await self._index.advance(end)
        return total

    async def _put_all(self, progress: Progress | None, *, embed: bool = False) -> tuple[int, bool]:
        """Put every row with the vectors that are known; with `embed` only those that lack some, once they
        are made. Returns how many rows there are, and whether none lacked any."""
        total, complete = 0, True
        async for drafts in self._rows.pages(self._clock(), BATCH):
            points, lacking = await vectors.points(self._database, self._embedder, drafts)
            if embed and lacking:
                await vectors.make(self._database, self._embedder, lacking)
                points, _ = await vectors.points(self._database, self._embedder, drafts)
            if lacking or not embed:
                await self._index.put(points)
            if not await self._index.lease(self._clock()):
                raise IndexUnavailable("another process fills the index")
            total, complete = total + len(drafts), complete and not lacking
            if progress and bool(lacking) == embed:
                progress(len(drafts))
        return total, complete


def _by_kind(changes: Sequence[Change]) -> dict[Kind, list[str]]:
    found: dict[Kind, dict[str, None]] = {}
    for change in changes:
        found.setdefault(change.kind, {})[change.id] = None  # type: ignore[arg-type]
    return {kind: list(ids) for kind, ids in found.items()}
