"""Operations for the operator and the schedule: `pet.admin`. They purge, clean up, prune traces, rebuild the
index, and show health, figures, keys and jobs."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from agent.services.forgetting import ForgetService
from agent.services.statistics import StatisticsService, WaitingForCalls
from agent.types.arguments import Instant
from agent.types.checks import checks_arguments
from memory.forgetting.cleanup import CleanupItem, expire
from memory.index.worker import Progress
from memory.records import Memory
from memory.sql.keys import Keys
from tools.threads import MOST, exhausted

if TYPE_CHECKING:
    from agent.wiring.components import Components


@dataclass(frozen=True)
class HealthService:
    """Checks whether the databases, the embedder and the index can be reached."""

    parts: "Components"

    @property
    def unavailable(self) -> list[str]:
        """Return what this process does not call at the moment: servers that keep failing, and the program's
        tools while all their threads are busy."""
        breakers = {**self.parts.breakers, **self.parts.extensions.breakers}
        names = [name for name, breaker in breakers.items() if breaker.state != "closed"]
        return [*names, f"tools: all {MOST} threads are taken"] if exhausted() else names

    async def revision(self) -> str | None:
        """Return the revision of the database's schema. Raises StoreUnavailable."""
        return await self.parts.database.revision()

    async def embed(self) -> str:
        """Embed a sentence, and return the embedder's name and dimensions. Raises EmbedderUnavailable."""
        await self.parts.embedder.embed(["Is anybody there?"])
        return f"{self.parts.embedder.name}, {self.parts.embedder.dimension} dimensions"

    async def indexed(self) -> int:
        """Return the number of entries in the index: on a server, or in this process. Raises IndexUnavailable
        or EmbedderUnavailable."""
        return await (self.parts.sync.server or self.parts.sync.engine).count()

    async def too_big(self) -> list[str]:
        """Return the owner keys with more messages than the index of this process can hold."""
        return [] if self.parts.sync.server else await self.parts.sync.engine.too_big()

    async def waiting_for_index(self) -> int:
        """Return how many changes are not in the index yet. Searches read them from the database. Raises
        IndexUnavailable."""
        return await self.parts.sync.pending()


@checks_arguments
@dataclass(frozen=True)
class AdminService:
    parts: "Components"
    forgetting: ForgetService

    @property
    def health(self) -> HealthService:
        return HealthService(self.parts)

    @property
    def statistics(self) -> StatisticsService:
        c = self.parts
        return StatisticsService(c.database, c.store, c.queue, c.figures, c.clock)

    @property
    def keys(self) -> Keys:
        return self.parts.keys

    async def pending_consolidations(self) -> WaitingForCalls:
        """Count the consolidations that wait because their owner has no model calls left."""
        return await self.parts.consolidation_budget.waiting()

    async def preview_purge(self) -> list[CleanupItem]:
        """Return what `purge` and `tidy` would delete now."""
        return await self.parts.cleanup.preview()

    async def tidy(self) -> list[CleanupItem]:
        """Delete what exceeds the settings `unused_days`, `max_memories` and `message_days`. Returns the
        deleted memories."""
        if await self.parts.cleanup.hide_old_messages():
            await self.forgetting.purge_due()
        return await self.parts.cleanup.run()

    async def purge(self) -> list[Memory]:
        """Delete expired memories, and return them."""
        await self.purge_forgotten()
        purged = await expire(self.parts.database, self.parts.clock)
        self.parts.sync.wake()
        return purged

    async def purge_forgotten(self) -> None:
        """Purge what was forgotten and can no longer be restored, in traces too."""
        await self.forgetting.purge_due()

    async def prune_traces(self, before: Instant | None = None) -> int:
        """Delete traces that began before this time; by default, those older than the setting `trace_days`.
        Returns how many."""
        days = self.parts.settings.trace_days
        if before is None and days is None:
            return 0
        return await self.parts.traces.prune(before or self.parts.clock() - timedelta(days=days or 0))

    async def give_back(self) -> None:
        """Return the space of deleted rows and traces to the file system."""
        for database in {self.parts.database, self.parts.traces.database}:
            await database.give_back()

    async def reindex(self, progress: Progress | None = None) -> int:
        """Rebuild the index from the database. Returns the number of rows read."""
        return await self.parts.sync.catch_up(progress, anew=True)

    async def catch_up(self, progress: Progress | None = None) -> int:
        """Bring the index on a server up to date, and fill a new one. Returns the number of rows read.
        Searches do not wait for it. Raises IndexUnavailable or EmbedderUnavailable."""
        return await self.parts.sync.catch_up(progress)

    async def cut_log(self) -> None:
        """Shorten the log of changes."""
        await self.parts.sync.tidy()

    async def rows_to_index(self) -> int:
        """Return how many rows `reindex` will read."""
        return await self.parts.sync.rows()
