"""The only place where parts are put together. `agent/companion.py` opens and closes what is built here.

`open_components` opens what remembers: databases, indexes, and what works on them. It loads nothing slow.
`build_services` makes what surfaces call. `open_runtime` adds what a turn needs, on first use: the Agents SDK
takes seconds to import.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from agent.background.forget_outside import ForgettingOutside
from agent.background.reminders import Reminders
from agent.background.upkeep_budget import UpkeepBudget
from agent.models.providers import base_url_of
from agent.models.registry import Models, load
from agent.services.admin import AdminService
from agent.services.conversations import ConversationService
from agent.services.documents import DocumentService
from agent.services.erasure import ErasureService
from agent.services.erasure.outside_sql import ErasureOutsideSql, out_of_reach
from agent.services.erasure.waiting_jobs import WaitingJobs
from agent.services.forgetting import ForgetService
from agent.services.health import HealthService
from agent.services.home import lost_database, make_private, remove_obsolete
from agent.services.memories import MemoryService
from agent.services.people import PeopleService
from agent.services.statistics import Figures, StatisticsService
from agent.services.tasks import TaskService
from agent.settings import Settings
from agent.tracing.recorder import Recorder
from agent.tracing.setup import open_recorder
from agent.tracing.store.traces import Traces
from agent.turn.forget_requests import ForgetRequests
from agent.turn.persona import read_persona
from memory.documents.library import DocumentLibrary
from memory.erasure.cleanup import CleanUp, Limits
from memory.erasure.expiry import Forgetting
from memory.erasure.person.erasure import Erasure
from memory.erasure.statements import StatementForgetting
from memory.errors import StoreUnavailable
from memory.facts.history import History
from memory.facts.similar import SimilarFacts
from memory.facts.writer import FactWriter
from memory.index import Index
from memory.index.embedded.index import EmbeddedIndex
from memory.index.embedders import Embedder, open_embedder
from memory.index.embedders.calibration import stored_thresholds
from memory.index.server import ServerIndex
from memory.index.sync import IndexSync
from memory.people.places import Places
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Tasks
from memory.process.breaker import Breaker
from memory.search.recall import Recall
from memory.sql.deliveries import Deliveries
from memory.sql.engine import Database
from memory.sql.jobs import JobQueue
from memory.sql.keys import Keys
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript
from memory.sql.summaries import ConversationSummaries

if TYPE_CHECKING:
    from agents.models.interface import Model

    from agent.background.worker import Worker
    from agent.turn.context import ContextServices
    from agent.turn.jobs import ConsolidationDue
    from agent.turn.turn import TurnDependencies

log = logging.getLogger("hachi")

Clock = Callable[[], datetime]

GUARDED = {"model": 3, "upkeep model": 3, "embedder": 1, "index": 1, "traces database": 1, "collector": 1}
"""The servers that may be away, and how many failures in a row open their breaker. Without the last four,
everything goes on."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Components:
    """Everything that remembers, open."""

    settings: Settings
    clock: Clock
    models: Models
    breakers: Mapping[str, Breaker]
    database: Database
    embedder: Embedder
    index: Index
    store: MemoryStore
    transcript: Transcript
    summaries: ConversationSummaries
    profiles: ProfileStore
    tasks: Tasks
    queue: JobQueue
    traces: Traces
    recorder: Recorder
    sync: IndexSync
    recall: Recall
    similar: SimilarFacts
    writer: FactWriter
    documents: DocumentLibrary
    forgetting: Forgetting
    figures: Figures
    upkeep_budget: UpkeepBudget
    statements: StatementForgetting
    forgetting_outside: ForgettingOutside


@dataclass(frozen=True)
class Services:
    """What `Companion` offers besides talking."""

    memories: MemoryService
    tasks: TaskService
    documents: DocumentService
    people: PeopleService
    conversations: ConversationService
    admin: AdminService
    reminders: Reminders


@dataclass(frozen=True)
class Runtime:
    """What a turn needs, and the worker that does what it leaves behind."""

    turn: "TurnDependencies"
    worker: "Worker"


@asynccontextmanager
async def open_components(
    settings: Settings,
    clock: Clock,
    model: "Model | None" = None,
    upkeep_model: "Model | None" = None,
    surface: str = "python",
) -> AsyncIterator[Components]:
    async with AsyncExitStack() as closing:
        breakers = {name: Breaker(name, clock, failures) for name, failures in GUARDED.items()}
        url = settings.database_url.get_secret_value() if settings.database_url else None
        remove_obsolete(settings.home)
        make_private(settings.home)
        closing.callback(make_private, settings.home)  # last, for the files that were made meanwhile
        if url is None and (lost := lost_database(settings.home)):
            raise StoreUnavailable(lost)
        database = await Database.open(url, settings.home)
        closing.push_async_callback(database.close)
        closing.push_async_callback(_count_writes, database)
        if database.older:
            log.warning("%s", database.older)
        traces_database = traces_database_of(settings)
        if traces_database is not None:
            closing.push_async_callback(traces_database.close)
        embedder = open_embedder(
            settings.chosen_embedder,
            api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else None,
            base_url=base_url_of(settings),
            breaker=breakers["embedder"],
            measured=stored_thresholds(settings.home, settings.chosen_embedder),
        )
        closing.push_async_callback(embedder.close)
        models = Models(settings, model, upkeep_model, breakers["model"], breakers["upkeep model"])
        closing.push_async_callback(models.close)
        components = _components(
            settings, clock, models, breakers, database, traces_database, embedder, surface
        )
        closing.push_async_callback(components.index.close)
        closing.push_async_callback(components.sync.stop)
        closing.push_async_callback(_note_uses, components)
        closing.push_async_callback(components.recorder.close)
        yield components


def traces_database_of(settings: Settings) -> Database | None:
    """The database of traces, if they have one of their own. It is opened with the first trace."""
    if settings.traces_url is None:
        return None
    return Database.lazily(settings.traces_url.get_secret_value(), settings.home, "HACHI_TRACES_URL")


def _index(settings: Settings, database: Database, embedder: Embedder, breaker: Breaker) -> Index:
    """The index in a folder of the home, or on the Qdrant server of the settings. The first call opens it."""
    if not settings.qdrant_url:
        return EmbeddedIndex(settings.home / "index", embedder, database.number)
    key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return ServerIndex.at(
        settings.qdrant_url,
        key,
        embedder,
        database,
        grpc_port=settings.qdrant_grpc_port,
        breaker=breaker,
    )


def _components(
    settings: Settings,
    clock: Clock,
    models: Models,
    breakers: Mapping[str, Breaker],
    database: Database,
    traces_database: Database | None,
    embedder: Embedder,
    surface: str,
) -> Components:
    index = _index(settings, database, embedder, breakers["index"])
    figures = Figures(database)
    store, transcript, queue = MemoryStore(database), Transcript(database), JobQueue(database, clock)
    summaries = ConversationSummaries(database)
    sync = IndexSync(store, transcript, index, embedder, clock, summaries)
    judge = models.judge if models.judges else None
    search = partial(sync.searching.search, patient=False)
    similar = SimilarFacts(database, store, search, embedder, judge, models.consolidates)
    traces = Traces(traces_database or database, database if traces_database else None)
    recorder = open_recorder(settings, traces, clock, surface, breakers)
    undo_for = timedelta(minutes=settings.forget_undo_minutes)
    return Components(
        settings=settings,
        clock=clock,
        models=models,
        breakers=breakers,
        database=database,
        embedder=embedder,
        index=index,
        store=store,
        transcript=transcript,
        summaries=summaries,
        profiles=ProfileStore(database),
        tasks=Tasks(database),
        queue=queue,
        traces=traces,
        recorder=recorder,
        sync=sync,
        recall=Recall(
            store,
            transcript,
            embedder,
            sync,
            clock,
            summaries,
            _days(settings.half_life_days),
            figures.count,
        ),
        similar=similar,
        writer=FactWriter(database, store, similar, sync, clock, settings.importance_floor, figures.count),
        documents=DocumentLibrary(database, sync, embedder, clock, models.reranker()),
        forgetting=Forgetting(database, queue, clock),
        figures=figures,
        upkeep_budget=UpkeepBudget(database, clock, settings.upkeep_per_hour, settings.upkeep_per_day),
        statements=StatementForgetting(
            database, queue, clock, WaitingJobs(clock).without_forgotten, undo_for
        ),
        forgetting_outside=ForgettingOutside(settings.home, traces, recorder, queue, clock),
    )


def build_services(c: Components) -> Services:
    outside = ErasureOutsideSql(
        c.settings.home,
        c.traces,
        c.recorder,
        c.transcript,
        c.store,
        c.embedder,
        c.figures,
        c.forgetting_outside.finish,
        out_of_reach(c.settings),
    )
    person = Erasure(
        c.database,
        c.queue,
        c.sync,
        c.index,
        c.documents,
        c.clock,
        WaitingJobs(c.clock).without_recalled,
        outside,
    )
    erasure = ErasureService(person)
    forgetting = ForgetService(
        c.forgetting,
        c.statements,
        c.store,
        c.transcript,
        c.sync,
        c.forgetting_outside.run,
        c.forgetting_outside.bring_back,
    )
    memories = MemoryService(
        c.store,
        c.recall,
        c.writer,
        c.transcript,
        forgetting,
        ForgetRequests(c.recall, c.transcript),
        History(c.database),
        c.profiles,
        c.sync,
        erasure,
        c.clock,
    )
    return Services(
        memories=memories,
        tasks=TaskService(c.tasks, c.profiles, c.clock),
        documents=DocumentService(c.documents, erasure),
        people=PeopleService(
            c.profiles,
            memories,
            c.store,
            c.transcript,
            Places(c.database),
            c.tasks,
            c.summaries,
            erasure,
            c.clock,
            c.settings.memory,
        ),
        conversations=ConversationService(
            c.database,
            c.transcript,
            c.store,
            c.documents,
            c.writer,
            forgetting,
            Deliveries(c.database),
            c.sync,
            erasure,
            c.clock,
        ),
        admin=_admin(c),
        reminders=Reminders(c.database, c.queue, c.transcript, c.profiles, c.clock),
    )


def _admin(c: Components) -> AdminService:
    limits = Limits(_days(c.settings.unused_days), c.settings.unimportant, c.settings.max_memories)
    return AdminService(
        HealthService(c.database, c.traces, c.embedder, c.index, c.sync, c.breakers),
        StatisticsService(c.database, c.store, c.queue, c.figures, c.clock),
        Keys(c.database),
        c.queue,
        c.upkeep_budget.waiting,
        c.database,
        c.forgetting,
        c.statements,
        c.forgetting_outside.run,
        CleanUp(c.database, c.store, c.forgetting, limits, c.clock),
        c.sync,
        c.traces,
        c.settings.trace_days,
        c.clock,
    )


async def open_runtime(c: Components, reminds: Callable[[str], bool]) -> Runtime:
    """What a turn needs; the worker then takes up the jobs that an earlier process did not finish."""
    await load("agent.turn.turn")
    from agent.background.consolidation import Consolidation
    from agent.background.reading import ConversationReader
    from agent.background.worker import Worker
    from agent.models.failures import model_error
    from agent.turn.turn import TurnDependencies
    from tools.registry import TOOLS

    settings = c.settings
    model = await c.models.upkeep() if c.models.consolidates else None
    due = _consolidation_due(settings)
    reader = ConversationReader(
        transcript=c.transcript,
        summaries=c.summaries,
        profiles=c.profiles,
        store=c.store,
        tasks=c.tasks,
        similar=c.similar,
        clock=c.clock,
        with_model=model is not None,
        judging=c.models.judges,
        mode=settings.mode,
        reread=settings.summary_reread,
        budget=settings.context_budget,
    )
    consolidation = Consolidation(
        database=c.database,
        reader=reader,
        summaries=c.summaries,
        profiles=c.profiles,
        tasks=c.tasks,
        queue=c.queue,
        due=due,
        writer=c.writer,
        clock=c.clock,
        model=model,
        calls=c.upkeep_budget,
        budget=settings.summary_budget,
        explain=lambda error: model_error(error, c.models.upkeep_settings),
        count=c.figures.count,
    )
    worker = Worker(
        c.queue, c.writer, consolidation, c.sync, c.recall, c.clock, c.recorder, c.forgetting_outside
    )
    turn = TurnDependencies(
        settings=settings,
        clock=c.clock,
        model=await c.models.answering(),
        database=c.database,
        transcript=c.transcript,
        context=_context_services(c, reminds),
        recall=c.recall,
        forget_requests=ForgetRequests(c.recall, c.transcript),
        writer=c.writer,
        queue=c.queue,
        worker=worker,
        consolidation=None if settings.look_back == "off" else due,
        recorder=c.recorder,
        tools=TOOLS,
    )
    worker.wake()
    return Runtime(turn, worker)


def _consolidation_due(settings: Settings) -> "ConsolidationDue":
    from agent.turn.jobs import ConsolidationDue

    quiet = timedelta(minutes=settings.look_back_minutes)
    return ConsolidationDue(quiet, settings.history_messages, settings.history_budget)


def _context_services(c: Components, reminds: Callable[[str], bool]) -> "ContextServices":
    from agent.turn.context import ContextServices
    from agent.turn.prompt import budgets_of

    settings = c.settings
    return ContextServices(
        clock=c.clock,
        transcript=c.transcript,
        summaries=c.summaries,
        profiles=c.profiles,
        facts=c.store,
        tasks=c.tasks,
        documents=c.documents,
        budgets=budgets_of(settings),
        history_messages=settings.history_messages,
        documents_first=settings.knowledge_first,
        persona=read_persona(settings.persona),
        reminds=reminds,
        count=c.figures.count,
    )


async def _note_uses(c: Components) -> None:
    """Store which memories were recalled, and the figures of this process."""
    try:
        await c.recall.note_uses()
        await c.figures.flush()
    except StoreUnavailable as error:
        log.warning("the use of memories is not noted: %s", error)


async def _count_writes(database: Database) -> None:
    try:
        await database.count_writes()
    except StoreUnavailable as error:
        log.warning("the writes are not counted: %s", error)


def _days(number: float | None) -> timedelta | None:
    return timedelta(days=number) if number else None
