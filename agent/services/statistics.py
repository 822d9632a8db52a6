"""Counts over everybody's data, for the operator. They never contain content."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select, union
from sqlalchemy.dialects.postgresql import insert

from memory.audience import Audience
from memory.sql.engine import Database
from memory.sql.jobs.queue import JobQueue
from memory.sql.memories.replacements import is_active, unexpired
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.message_rows import is_visible
from memory.sql.messages.transcript import Transcript
from memory.sql.tables import (
    erasures,
    figures,
    knowledge_documents,
    memories,
    memory_owners,
    messages,
    tasks,
    users,
)

NAMED, NAMELESS = "requests with a user", "requests without a user"
"""Names of figures: how many requests of services named a user, and how many did not."""
HOW_TO_NAME = "ENABLE_FORWARD_USER_INFO_HEADERS=true in Open WebUI, or `user` in the request"


class Figures:
    """Counts events for each person in memory. The counts are added to the database when they are read, by
    the schedule, and at the end; a killed process loses those since the last time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counted: Counter[tuple[str, str]] = Counter()

    def count(self, user: str, counts: Mapping[str, int]) -> None:
        """Count events for this person; an empty name means nobody."""
        self._counted.update({(user, name): number for name, number in counts.items() if number})

    def forget(self, user: str) -> None:
        """Drop the counts of an erased person that are not in the database yet."""
        self._counted = Counter({key: n for key, n in self._counted.items() if key[0] != user})

    async def flush(self) -> None:
        """Add this process's counts to the database. After StoreUnavailable the counts stay in memory."""
        counted, self._counted = self._counted, Counter()
        if not counted:
            return
        new = insert(figures)
        added = new.on_conflict_do_update(
            index_elements=["user_id", "name"], set_={"value": figures.c.value + new.excluded.value}
        )
        rows = [{"user_id": user, "name": name, "value": n} for (user, name), n in sorted(counted.items())]
        try:
            async with self._database.write() as connection:
                await connection.execute(added, rows)
        except BaseException:
            self._counted.update(counted)
            raise

    async def totals(self, user: str | None) -> Counter[str]:
        """Return the counts of all processes, of one person or of everybody."""
        await self.flush()
        query = select(figures.c.name, func.sum(figures.c.value)).group_by(figures.c.name)
        query = query if user is None else query.where(figures.c.user_id == user)
        return Counter({row[0]: int(row[1]) for row in await self._database.rows(query)})


@dataclass(frozen=True, slots=True)
class CountedMemory:
    """The columns of a memory that the statistics need."""

    type: str
    subjects: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PersonFigures:
    """A person with stored data, and how much there is."""

    user: str
    name: str = ""
    """Their display name; empty if they wrote nothing."""
    messages: int = 0
    """Their messages, without the replies."""
    memories: int = 0
    """Active memories that they may read in private, without those of everybody."""
    tasks: int = 0
    """Open tasks."""
    documents: int = 0
    last_message: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitingForCalls:
    """The consolidations whose owners have no model calls left."""

    jobs: int = 0
    until: datetime | None = None
    """When the last of them can run."""


@dataclass(frozen=True)
class StatisticsService:
    database: Database
    store: MemoryStore
    queue: JobQueue
    figures: Figures
    clock: Callable[[], datetime]

    async def memories(self, user: str | None) -> Sequence[CountedMemory]:
        """Return the active memories of one person in private, or of everybody."""
        if user is not None:
            own = await self.store.newest(Audience.of(user), self.clock())
            return [CountedMemory(m.type, m.subjects, m.created_at) for m in own]
        held = exists().where(memory_owners.c.memory_id == memories.c.id, is_active())
        query = select(memories.c.type, memories.c.subjects, memories.c.created_at)
        rows = await self.database.rows(query.where(held, unexpired()), {"now": self.clock()})
        return [CountedMemory(row.type, tuple(row.subjects), row.created_at) for row in rows]

    async def people(self) -> list[PersonFigures]:
        """Return everybody with stored data, ordered by id."""
        spoke = select(messages.c.user_id, func.count(), func.max(messages.c.sent_at))
        spoke = spoke.where(messages.c.role == "user", is_visible()).group_by(messages.c.user_id)
        held = memories.c.id == memory_owners.c.memory_id, is_active(), unexpired()
        counted = {
            "memories": (memory_owners.c.owner, *held),
            "tasks": (tasks.c.user_id, tasks.c.status != "done"),
            "documents": (knowledge_documents.c.owner,),
        }
        async with self.database.read() as connection:
            known = await connection.scalars(union(select(users.c.id), select(memories.c.user_id)))
            found: dict[str, dict[str, Any]] = {user: {} for user in known if user}
            for user, number, last in await connection.execute(spoke):
                found.setdefault(user, {}).update(messages=number, last_message=last)
            for name, (of, *where) in counted.items():
                query = select(of, func.count()).where(*where).group_by(of)
                for owner, number in await connection.execute(query, {"now": self.clock()}):
                    if name == "tasks" or owner.startswith("user:"):
                        found.setdefault(owner.removeprefix("user:"), {})[name] = number
        names = await Transcript(self.database).speakers.names(found)
        return [PersonFigures(user, names.get(user, ""), **found[user]) for user in sorted(found)]

    async def stored(self) -> Counter[str]:
        """Count rows without checking which memories are active, because that check takes seconds."""
        waiting, given_up = await self.queue.counts()
        stored = {"work waiting": waiting, "work given up": given_up}
        for table in (memories, messages):
            [[stored[table.name]]] = await self.database.rows(select(func.count()).select_from(table))
        return Counter(stored)

    async def totals(self) -> dict[str, int]:
        """Return the count of each kind of row, in display order."""
        kept, stored = await self.store.totals(self.clock()), await self.stored()
        async with self.database.read() as connection:
            grouped = await connection.execute(select(tasks.c.status, func.count()).group_by(tasks.c.status))
            unfinished = (await connection.execute(select(func.count()).select_from(erasures))).scalar_one()
            by_status: dict[str, int] = {row[0]: row[1] for row in grouped}
        done = by_status.pop("done", 0)
        return {
            "memories": kept["active"],
            "memories superseded": kept["superseded"],
            "memories expired": kept["expired"],
            "messages": stored["messages"],
            "tasks open": sum(by_status.values()),
            "tasks done": done,
            "work waiting": stored["work waiting"],
            "work given up": stored["work given up"],
        } | ({"erasures unfinished": unfinished} if unfinished else {})
