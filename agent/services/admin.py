"""What the operator and the schedule do: purge, clean up, prune traces, rebuild the index, look at health,
figures, keys and jobs: `pet.admin`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.services.forgetting import ForgetService
from agent.services.statistics import StatisticsService, WaitingForCalls
from agent.tracing.store.traces import Traces
from agent.types.checks import checks_arguments
from memory.forgetting.cleanup import CleanUp, CleanupItem
from memory.forgetting.expiry import expire
from memory.index.embedders import Embedder
from memory.index.indexing import Indexing
from memory.index.worker import Progress
from memory.process.breaker import Breaker
from memory.records import Memory
from memory.sql.engine import Database
from memory.sql.jobs.queue import JobQueue
from memory.sql.keys import Keys
from tools.threads import MOST, all_taken


@dataclass(frozen=True)
class HealthService:
    """Whether the databases, the embedder and the index can be reached."""

    database: Database
    embedder: Embedder
    sync: Indexing
    breakers: Mapping[str, Breaker]

    @property
    def left_alone(self) -> list[str]:
        """The servers that this process does not call now, because they keep failing; and the program's tools
        while all of their threads are taken."""
        names = [name for name, breaker in self.breakers.items() if breaker.state != "closed"]
        return [*names, f"tools: all {MOST} threads are taken"] if all_taken() else names

    async def revision(self) -> str | None:
        """The revision of the database's schema. Raises StoreUnavailable."""
        return await self.database.revision()

    async def embed(self) -> str:
        """Embed a sentence; the embedder's name and dimensions. Raises EmbedderUnavailable."""
        await self.embedder.embed(["Is anybody there?"])
        return f"{self.embedder.name}, {self.embedder.dimension} dimensions"

    async def indexed(self) -> int:
        """Points in the index: on a server, or those that this process holds now. Raises IndexUnavailable or
        EmbedderUnavailable."""
        return await (self.sync.server or self.sync.engine).count()

    async def too_big(self) -> list[str]:
        """The owner keys that have more messages than the index in this process has room for."""
        return [] if self.sync.server else await self.sync.engine.too_big()

    async def waiting_for_index(self) -> int:
        """Changes that the index does not show yet: searches read them. Raises IndexUnavailable."""
        return await self.sync.pending()


@checks_arguments
@dataclass(frozen=True)
class AdminService:
    health: HealthService
    statistics: StatisticsService
    keys: Keys
    jobs: JobQueue
    upkeep_waiting: Callable[[], Awaitable[WaitingForCalls]]
    """How many consolidations wait for model calls."""
    database: Database
    forgetting: ForgetService
    cleanup: CleanUp
    sync: Indexing
    traces: Traces
    trace_days: float | None
    clock: Callable[[], datetime]

    async def preview_purge(self) -> list[CleanupItem]:
        """What `purge` and `tidy` would delete now."""
        return await self.cleanup.preview()

    async def tidy(self) -> list[CleanupItem]:
        """Delete what the settings `unused_days`, `max_memories` and `message_days` do not keep. Returns the
        memories."""
        if await self.cleanup.hide_old_messages():
            await self.forgetting.purge_due()
        return await self.cleanup.run()

    async def purge(self) -> list[Memory]:
        """Delete memories that have expired, and return them."""
        await self.purge_forgotten()
        purged = await expire(self.database, self.clock)
        self.sync.wake()
        return purged

    async def purge_forgotten(self) -> None:
        """Delete for good what was forgotten and can no longer be brought back, in traces too."""
        await self.forgetting.purge_due()

    async def prune_traces(self, before: datetime | None = None) -> int:
        """Delete traces from before that time, by default those older than the setting `trace_days`. Returns
        how many were deleted."""
        if before is None and self.trace_days is None:
            return 0
        return await self.traces.prune(before or self.clock() - timedelta(days=self.trace_days or 0))

    async def give_back(self) -> None:
        """Give the room of deleted rows and traces back to the file system."""
        for database in {self.database, self.traces.database}:
            await database.give_back()

    async def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the database. Returns how many rows that were."""
        return await self.sync.catch_up(progress, anew=True)

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Let an index on a server show what has changed; one that is new is filled. Returns how many rows
        that were. A search need not wait for it. Raises IndexUnavailable or EmbedderUnavailable."""
        return await self.sync.catch_up(progress)

    async def cut_log(self) -> None:
        """Shorten the log of changes."""
        await self.sync.tidy()

    async def rows_to_index(self) -> int:
        """Return how many rows `reindex` will read."""
        return await self.sync.rows()
