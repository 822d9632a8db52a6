"""Opens the components that store and search memory."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agent.background.consolidation_budget import ConsolidationBudget
from agent.models.choice.providers import base_url_of
from agent.models.choice.registry import Models
from agent.services.listing import ListParts
from agent.services.statistics import Figures
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.tracing.setup import open_recorder
from agent.tracing.store.traces import Traces
from agent.turn.extensions import Extensions
from agent.wiring.home import open_database
from memory.documents.library import DocumentLibrary
from memory.errors import StoreUnavailable
from memory.facts.similar import SimilarFacts
from memory.facts.writer import FactWriter
from memory.forgetting.forget_and_undo import Forgetting
from memory.forgetting.purge import Purge
from memory.index.embedders import Embedder, open_embedder
from memory.index.indexing import Indexing
from memory.index.server.index import ServerIndex
from memory.people.check_ins import CheckIns
from memory.people.links import Links
from memory.people.places import Places
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.process.breaker import Breaker
from memory.search.recall import Recall
from memory.sql.engine import Database
from memory.sql.jobs.queue import JobQueue
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.summaries import ConversationSummaries
from memory.sql.messages.transcript import Transcript

if TYPE_CHECKING:
    from agents.models.interface import Model

log = logging.getLogger("hachi")

Clock = Callable[[], datetime]

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


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Components(ListParts):
    """The open components that store and search memory."""

    settings: Settings
    models: Models
    breakers: Mapping[str, Breaker]
    database: Database
    embedder: Embedder
    summaries: ConversationSummaries
    tasks: Tasks
    places: Places
    check_ins: CheckIns
    queue: JobQueue
    traces: Traces
    recorder: Recorder
    sync: Indexing
    recall: Recall
    similar: SimilarFacts
    writer: FactWriter
    documents: DocumentLibrary
    forgetting: Forgetting
    purge: Purge
    figures: Figures
    consolidation_budget: ConsolidationBudget
    extensions: Extensions


async def open_components(
    closing: AsyncExitStack,
    settings: Settings,
    clock: Clock,
    model: "Model | None",
    consolidation_model: "Model | None",
    surface: str,
    added: Extensions,
) -> Components:
    """Open the components; `closing` closes them. There are no async generators here: if the companion is not
    closed, the event loop would finalise them in the wrong order."""
    breakers = {name: Breaker(name, clock, failures) for name, failures in GUARDED.items()}
    database = await open_database(closing, settings)
    embedder = open_embedder(
        settings.chosen_embedder,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
        base_url=base_url_of(settings),
        breaker=breakers["embedder"],
    )
    closing.push_async_callback(embedder.close)
    models = Models(
        settings,
        model,
        consolidation_model,
        breakers["model"],
        breakers["consolidation model"],
        breakers["fallback model"],
    )
    closing.push_async_callback(models.close)
    components = _components(settings, clock, models, breakers, database, embedder, surface, added)
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


def _components(
    settings: Settings,
    clock: Clock,
    models: Models,
    breakers: Mapping[str, Breaker],
    database: Database,
    embedder: Embedder,
    surface: str,
    added: Extensions,
) -> Components:
    server = _server(settings, database, embedder, breakers["index"])
    figures = Figures(database)
    store, transcript, queue = MemoryStore(database), Transcript(database), JobQueue(database, clock)
    summaries = ConversationSummaries(database)
    sync = Indexing(database, embedder, clock, settings.index_memory * 1_000_000, server)
    judge = models.judge if models.judges else None
    similar = SimilarFacts(database, store, sync.search, embedder, judge, models.consolidates)
    traces = Traces(database, clock)
    recorder = open_recorder(settings, traces, clock, surface, breakers, added.tools)
    undo_for = timedelta(minutes=settings.forget_undo_minutes)
    return Components(
        settings=settings,
        clock=clock,
        models=models,
        breakers=breakers,
        database=database,
        embedder=embedder,
        store=store,
        transcript=transcript,
        summaries=summaries,
        profiles=ProfileStore(database),
        links=Links(database),
        tasks=Tasks(database),
        places=Places(database),
        check_ins=CheckIns(database, settings.waking_hours),
        queue=queue,
        traces=traces,
        recorder=recorder,
        sync=sync,
        recall=Recall(
            store=store,
            transcript=transcript,
            embedder=embedder,
            indexing=sync,
            clock=clock,
            conversations=summaries,
            half_life=days(settings.half_life_days),
            count=figures.count,
        ),
        similar=similar,
        writer=FactWriter(
            database=database,
            store=store,
            similar=similar,
            indexing=sync,
            clock=clock,
            importance_floor=settings.importance_floor,
            count=figures.count,
            logged=settings.decisions,
        ),
        documents=DocumentLibrary(database, sync, embedder, clock),
        forgetting=Forgetting(database, clock, undo_for),
        purge=Purge(database, clock),
        figures=figures,
        consolidation_budget=ConsolidationBudget(database, clock, settings.consolidate_per_day),
        extensions=added,
    )


async def _note_uses(c: Components) -> None:
    """Store which memories were recalled, and this process's figures."""
    try:
        await c.recall.note_uses()
        await c.figures.flush()
    except StoreUnavailable as error:
        log.warning("the use of memories is not noted: %s", error)


def days(number: float | None) -> timedelta | None:
    return timedelta(days=number) if number else None
