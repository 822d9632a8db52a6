"""Makes what `Companion` offers besides talking."""

from dataclasses import dataclass

from agent.background.reminders import Reminders
from agent.services.admin import AdminService, HealthService
from agent.services.conversations import ConversationService
from agent.services.documents import DocumentService
from agent.services.erasure.outside_sql import ErasureOutsideSql, out_of_reach
from agent.services.forgetting import ForgetService
from agent.services.memories import MemoryService
from agent.services.people import PeopleService
from agent.services.sessions import SessionService
from agent.services.statistics import StatisticsService
from agent.services.tasks import TaskService
from agent.turn.forget_requests import ForgetRequests
from agent.wiring.components import Components, days
from memory.facts.history import History
from memory.forgetting.cleanup import CleanUp, Limits
from memory.forgetting.erasure import Erasure
from memory.people.places import Places
from memory.sql.jobs.deliveries import Deliveries
from memory.sql.keys import Keys


@dataclass(frozen=True)
class Services:
    """What `Companion` offers besides talking."""

    memories: MemoryService
    tasks: TaskService
    documents: DocumentService
    people: PeopleService
    conversations: ConversationService
    sessions: SessionService
    admin: AdminService
    reminders: Reminders


def build_services(c: Components) -> Services:
    erasure = _erasure(c)
    requests = ForgetRequests(c.recall, c.transcript, c.forgetting.preview)
    forgetting = ForgetService(
        forgetting=c.forgetting,
        requests=requests,
        purge=c.purge,
        store=c.store,
        sync=c.sync,
        home=c.settings.home,
        traces=c.traces,
        recorder=c.recorder,
    )
    memories = MemoryService(
        recorder=c.recorder,
        store=c.store,
        recall=c.recall,
        writer=c.writer,
        transcript=c.transcript,
        forgetting=forgetting,
        past=History(c.database),
        zone=lambda user, place: c.profiles.zone(user, place, c.clock()),
        sync=c.sync,
        erasure=erasure,
        clock=c.clock,
        places=Places(c.database),
    )
    return Services(
        memories=memories,
        tasks=TaskService(
            recorder=c.recorder,
            tasks=c.tasks,
            profiles=c.profiles,
            places=Places(c.database),
            forgetting=forgetting,
            clock=c.clock,
        ),
        documents=DocumentService(c.recorder, c.documents, erasure),
        people=_people(c, memories, erasure),
        conversations=_conversations(c, forgetting, erasure),
        sessions=SessionService(c.database),
        admin=_admin(c, forgetting),
        reminders=Reminders(c.database, c.queue, c.transcript, c.profiles, c.clock),
    )


def _erasure(c: Components) -> Erasure:
    outside = ErasureOutsideSql(
        c.settings.home,
        c.traces,
        c.recorder,
        c.transcript,
        c.store,
        c.embedder,
        c.figures,
        out_of_reach(c.settings),
    )
    return Erasure(c.database, c.purge, c.sync, c.documents, c.clock, outside)


def _people(c: Components, memories: MemoryService, erasure: Erasure) -> PeopleService:
    return PeopleService(
        recorder=c.recorder,
        profiles=c.profiles,
        memories=memories,
        store=c.store,
        transcript=c.transcript,
        places=Places(c.database),
        tasks=c.tasks,
        summaries=c.summaries,
        erasure=erasure,
        clock=c.clock,
        remembers=c.settings.memory,
    )


def _conversations(c: Components, forgetting: ForgetService, erasure: Erasure) -> ConversationService:
    return ConversationService(
        recorder=c.recorder,
        database=c.database,
        transcript=c.transcript,
        store=c.store,
        documents=c.documents,
        writer=c.writer,
        forgetting=forgetting,
        deliveries=Deliveries(c.database, c.queue),
        sync=c.sync,
        erasure=erasure,
        clock=c.clock,
    )


def _admin(c: Components, forgetting: ForgetService) -> AdminService:
    settings = c.settings
    limits = Limits(
        days(settings.unused_days), settings.unimportant, settings.max_memories, days(settings.message_days)
    )
    return AdminService(
        health=HealthService(c.database, c.embedder, c.sync, {**c.breakers, **c.extensions.breakers}),
        statistics=StatisticsService(c.database, c.store, c.queue, c.figures, c.clock),
        keys=Keys(c.database),
        jobs=c.queue,
        upkeep_waiting=c.consolidation_budget.waiting,
        database=c.database,
        forgetting=forgetting,
        cleanup=CleanUp(c.database, c.store, c.purge, limits, c.clock),
        sync=c.sync,
        traces=c.traces,
        trace_days=c.settings.trace_days,
        clock=c.clock,
    )
