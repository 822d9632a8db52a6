"""Creates the services that `Companion` offers, besides turns."""

from dataclasses import dataclass

from agent.background.reminders import Reminders
from agent.services.admin import AdminService, HealthService
from agent.services.conversations import ConversationService
from agent.services.documents import DocumentService
from agent.services.forgetting import ForgetService
from agent.services.memories import MemoryService
from agent.services.outside_sql.erase import ErasureOutsideSql
from agent.services.people import PeopleService
from agent.services.sessions import SessionService
from agent.services.statistics import StatisticsService
from agent.services.tasks import TaskService
from agent.turn.forget_requests import ForgetRequests
from agent.wiring.components import Components, days
from memory.forgetting.cleanup import CleanUp, Limits
from memory.forgetting.erasure import Erasure
from memory.sql.jobs.deliveries import Deliveries
from memory.sql.keys import Keys


@dataclass(frozen=True)
class Services:
    """The services of a `Companion`."""

    memories: MemoryService
    tasks: TaskService
    documents: DocumentService
    people: PeopleService
    conversations: ConversationService
    sessions: SessionService
    admin: AdminService
    reminders: Reminders


def build_services(c: Components) -> Services:
    forgetting = ForgetService(c, ForgetRequests(c.recall, c.transcript, c.forgetting.preview))
    erasure = Erasure(c.database, c.purge, c.sync, c.documents, c.clock, ErasureOutsideSql(c))
    memories = MemoryService(c, forgetting, erasure)
    statistics = StatisticsService(c.database, c.store, c.queue, c.figures, c.clock)
    unused, old = days(c.settings.unused_days), days(c.settings.message_days)
    limits = Limits(unused_for=unused, cap=c.settings.max_memories, messages_for=old)
    cleanup = CleanUp(c.database, c.store, c.purge, limits, c.clock)
    return Services(
        memories=memories,
        tasks=TaskService(c, forgetting),
        documents=DocumentService(c, erasure),
        people=PeopleService(c, memories, erasure),
        conversations=ConversationService(c, forgetting, Deliveries(c.database, c.queue), erasure),
        sessions=SessionService(c.database),
        admin=AdminService(c, HealthService(c), statistics, Keys(c.database), forgetting, cleanup),
        reminders=Reminders(c),
    )
