"""Opens the components that store and search memory."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import timedelta

from agent.background.consolidation.budget import ConsolidationBudget
from agent.models.choice.providers import base_url_of
from agent.models.choice.registry import Models
from agent.services.listing import ListParts
from agent.services.outside_sql import ErasureOutsideSql
from agent.services.statistics import Figures
from agent.settings import Settings
from agent.tracing.setup import open_recorder
from agent.tracing.store.traces import Traces
from agent.turn.extensions import Extensions
from agent.turn.forget_requests import ForgetRequests
from agent.types.options import Clock, OpenOptions
from agent.wiring.home import open_database
from memory.documents.library import DocumentLibrary
from memory.errors import StoreUnavailable
from memory.facts.similar import SimilarFacts
from memory.facts.writer import FactWriter
from memory.forgetting.cleanup import CleanUp, Limits
from memory.forgetting.erasure import Erasure
from memory.forgetting.forget_and_undo import Forgetting
from memory.forgetting.purge import Purge
from memory.index.embedders import Embedder, open_embedder
from memory.index.indexing import Indexing
from memory.index.server.index import ServerIndex
from memory.people.check_ins import CheckIns
from memory.people.places import Places
from memory.people.tasks import Tasks
from memory.process.breaker import Breaker, utc_now
from memory.search.recall import Recall
from memory.sql.engine import Database
from memory.sql.jobs.deliveries import Deliveries
from memory.sql.jobs.queue import JobQueue
from memory.sql.keys import Keys
from memory.sql.messages.summaries import ConversationSummaries

log = logging.getLogger("hachi")

GUARDED = {
    "model": 3,
    "consolidation model": 3,
    "fallback model": 3,
    "embedder": 1,
    "index": 1,
    "traces database": 1,
    "collector": 1,
}
"""The servers that may be unavailable, and the number of consecutive failures that opens their breaker.
Everything else works without the last four."""


class Components(ListParts):
    """The open components that store and search memory."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        database: Database,
        embedder: Embedder,
        breakers: Mapping[str, Breaker],
        models: Models,
        surface: str,
        extensions: Extensions,
    ) -> None:
        super().__init__(database, clock)
        self.settings, self.embedder, self.breakers = settings, embedder, breakers
        self.models, self.extensions = models, extensions
        self.summaries = ConversationSummaries(database)
        self.tasks, self.places = Tasks(database), Places(database)
        self.check_ins = CheckIns(database, settings.waking_hours)
        self.queue, self.figures = JobQueue(database, clock), Figures(database)
        self.traces = Traces(database, clock)
        self.recorder = open_recorder(settings, self.traces, clock, surface, breakers, extensions.tools)
        server = _server(settings, database, embedder, breakers["index"])
        self.sync = Indexing(database, embedder, clock, settings.index_memory * 1_000_000, server)
        search, judge = self.sync.search, models.judge if models.judges else None
        self.similar = SimilarFacts(database, self.store, search, embedder, judge, models.consolidates)
        self.recall = Recall(
            store=self.store,
            transcript=self.transcript,
            embedder=embedder,
            indexing=self.sync,
            clock=clock,
            conversations=self.summaries,
            half_life=days(settings.half_life_days),
            count=self.figures.count,
        )
        self.writer = FactWriter(
            database=database,
            store=self.store,
            similar=self.similar,
            indexing=self.sync,
            clock=clock,
            importance_floor=settings.importance_floor,
            count=self.figures.count,
            logged=settings.decisions,
        )
        self.documents = DocumentLibrary(database, self.sync, embedder, clock)
        self.forgetting = Forgetting(database, clock, timedelta(minutes=settings.forget_undo_minutes))
        self.forget_requests = ForgetRequests(self.recall, self.transcript, self.forgetting.preview)
        self.purge = Purge(database, clock)
        outside = ErasureOutsideSql(self)
        self.erasure = Erasure(database, self.purge, self.sync, self.documents, clock, outside)
        self.cleanup = CleanUp(database, self.store, self.purge, _limits(settings), clock)
        self.deliveries, self.keys = Deliveries(database, self.queue), Keys(database)
        self.consolidation_budget = ConsolidationBudget(database, clock, settings.consolidate_per_day)


async def open_components(
    closing: AsyncExitStack, settings: Settings, options: OpenOptions, added: Extensions
) -> Components:
    """Open the components; `closing` closes them. There are no async generators here: if the companion is not
    closed, the event loop would finalise them in the wrong order."""
    clock = options.get("clock", utc_now)
    breakers = {name: Breaker(name, clock, failures) for name, failures in GUARDED.items()}
    database = await open_database(closing, settings)
    embedder = open_embedder(
        settings.chosen_embedder,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
        base_url=base_url_of(settings),
        breaker=breakers["embedder"],
    )
    closing.push_async_callback(embedder.close)
    consolidating = options.get("consolidation_model", options.get("upkeep_model"))
    models = Models(settings, options.get("model"), consolidating, breakers)
    closing.push_async_callback(models.close)
    surface = options.get("surface", "python")
    components = Components(settings, clock, database, embedder, breakers, models, surface, added)
    closing.push_async_callback(components.sync.stop)
    closing.push_async_callback(_note_uses, components)
    closing.push_async_callback(components.recorder.close)
    return components


def _server(
    settings: Settings, database: Database, embedder: Embedder, breaker: Breaker
) -> ServerIndex | None:
    """Return the index on the Qdrant server of the settings, if one is set. It connects at the first call."""
    if not settings.qdrant_url:
        return None
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return ServerIndex(settings.qdrant_url, key, embedder, database, breaker=breaker)


def _limits(settings: Settings) -> Limits:
    """Return what the settings allow to stay."""
    unused, old = days(settings.unused_days), days(settings.message_days)
    return Limits(unused_for=unused, cap=settings.max_memories, messages_for=old)


async def _note_uses(c: Components) -> None:
    """Store which memories were recalled, and this process's figures."""
    try:
        await c.recall.note_uses()
        await c.figures.flush()
    except StoreUnavailable as error:
        log.warning("the use of memories is not noted: %s", error)


def days(number: float | None) -> timedelta | None:
    return timedelta(days=number) if number else None
