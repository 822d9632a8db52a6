"""Whether the databases, the embedder and the index can be reached, for the operator."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.tracing.store.traces import Traces
from memory.index import Index
from memory.index.embedders import Embedder, know_dimension
from memory.index.sync import IndexSync
from memory.process.breaker import Breaker
from memory.sql.engine import Database


@dataclass(frozen=True)
class HealthService:
    database: Database
    traces: Traces
    embedder: Embedder
    index: Index
    sync: IndexSync
    breakers: Mapping[str, Breaker]

    @property
    def left_alone(self) -> list[str]:
        """The servers that this process does not call now, because they keep failing."""
        return [name for name, breaker in self.breakers.items() if breaker.state != "closed"]

    @property
    def database_location(self) -> str:
        return self.database.where

    @property
    def traces_location(self) -> str | None:
        """None if traces are in the same database as everything else."""
        return None if self.traces.where == self.database.where else self.traces.where

    @property
    def older(self) -> str | None:
        """Says that the database is older than the one that was here before."""
        return self.database.older

    async def revision(self) -> str | None:
        """The revision of the database's schema. Raises StoreUnavailable."""
        return await self.database.revision()

    async def damage(self) -> list[str]:
        """What is damaged in the databases' files. Raises StoreUnavailable."""
        return await self.database.damage()

    async def traces_revision(self) -> str | None:
        """The revision of the schema of the traces' database. Raises StoreUnavailable."""
        return await self.traces.database.revision()

    async def embed(self) -> str:
        """Embed a sentence; the embedder's name and dimensions. Raises EmbedderUnavailable."""
        await self.embedder.embed(["Is anybody there?"])
        return f"{self.embedder.name}, {self.embedder.dimension} dimensions"

    async def indexed(self) -> int:
        """Points in the index. Raises IndexUnavailable or EmbedderUnavailable."""
        await know_dimension(self.embedder)
        return await self.index.count()

    async def waiting_for_index(self) -> int:
        """Rows that the index has not followed yet: searches read them. Raises IndexUnavailable."""
        return await self.sync.due()
