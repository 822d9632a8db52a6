"""Maintenance for the operator and the schedule: purge, clean up, prune traces, rebuild the indexes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.tracing.store import removal
from agent.tracing.store.traces import Traces
from memory.documents.library import DocumentLibrary
from memory.erasure.cleanup import CleanUp
from memory.erasure.expiry import Forgetting
from memory.erasure.statements import StatementForgetting
from memory.index import Index
from memory.index.embedders import Embedder, know_dimension
from memory.index.sync import IndexSync, Progress
from memory.records import Memory
from memory.sql.engine import Database


@dataclass(frozen=True)
class MaintenanceService:
    database: Database
    forgetting: Forgetting
    statements: StatementForgetting
    forget_outside: Callable[[str], Awaitable[int]]
    cleanup: CleanUp
    index: Index
    sync: IndexSync
    documents: DocumentLibrary
    documents_index: Index
    embedder: Embedder
    traces: Traces
    trace_days: float | None
    clock: Callable[[], datetime]

    async def purge(self) -> list[Memory]:
        """Delete expired memories and return them."""
        await self.purge_undo()
        purged = await self.forgetting.purge()
        if purged:  # a memory that an expired one had replaced may become valid again
            await self.sync.try_to_catch_up()
        return purged

    async def purge_undo(self) -> None:
        """Delete for good what was forgotten and can no longer be brought back, in traces too."""
        if jobs := await self.statements.purge_undo():
            for job in jobs:
                await self.forget_outside(job)
            await self.database.empty_log()

    async def prune_traces(self, before: datetime | None = None) -> int:
        """Delete traces from before that time, by default those older than the setting `trace_days`. Returns
        how many were deleted."""
        if before is None and self.trace_days is None:
            return 0
        return await removal.prune(
            self.traces.database, before or self.clock() - timedelta(days=self.trace_days or 0)
        )

    async def give_back(self, *, rewrite: bool = False) -> None:
        """Give the room of deleted rows and traces back to the file system. With `rewrite` also in files of
        an older version, which blocks for some 5 ms a megabyte."""
        for database in {self.database, self.traces.database}:
            await database.give_back(rewrite=rewrite)

    async def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild both indexes from the database. Returns how many rows they hold."""
        await know_dimension(self.embedder)
        await self.index.wipe()
        count = await self.sync.catch_up(progress)
        if not await self.documents.empty():
            await self.documents_index.wipe()
            count += await self.documents.catch_up(progress)
        return count

    async def tend_indexes(self) -> None:
        """Shrink the files of the indexes, and compare the indexes with the rows. What does not fit is
        rebuilt in the background. Raises IndexUnavailable."""
        await self.index.optimise()
        await self.sync.check()
        if not await self.documents.empty():
            await self.documents_index.optimise()
            await self.documents.sync.check()

    async def rows_to_index(self) -> int:
        """Return how many rows `reindex` will read. No index has the empty generation, so every row
        counts."""
        return await self.sync.due("")

    async def try_to_catch_up(self) -> None:
        """Run `catch_up`, but log an unreachable index or embedder instead of raising; the rows then wait."""
        await self.sync.try_to_catch_up()
