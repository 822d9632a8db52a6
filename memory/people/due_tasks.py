"""Add a job for the reminder of each due task: once per due time, whichever process is first.

One transaction marks a task as announced (`tasks.reminded`) and adds the job that announces it. If a process
dies before it has sent the reminder, the job runs again: at worst the person gets it twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, not_, or_, select, update

from memory.audience import Place
from memory.records import Task
from memory.sql.engine import Database
from memory.sql.hidden import TASK_IS_HIDDEN
from memory.sql.jobs.job import REMIND, Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import claimable
from memory.sql.tables import message_origins, messages, rests_on, tasks, work

TOO_OLD = timedelta(days=30)
"""A task that has been due for longer than this is not announced. It stays in the list of tasks."""
AT_ONCE = 50
"""Tasks handled in one transaction."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A task to announce."""

    task: Task
    place: Place
    """The place where the user asked for the task."""
    conversation: str = ""
    asked_in: str = ""
    """The conversation and platform id (``discord:1234``) of the last message that asked for it, if any."""


class DueTasks:
    """The due tasks of people whose ids begin with one of `prefixes`. A prefix ends with a colon, is empty,
    or is a whole id."""

    def __init__(self, database: Database, queue: JobQueue) -> None:
        self._database = database
        self._queue = queue

    async def take(self, prefixes: Collection[str], now: datetime) -> int:
        """Add a job for each due task. Returns how many tasks that were."""
        total = 0
        while taken := await self._take_some(prefixes, now):
            total += taken
        return total

    async def _take_some(self, prefixes: Collection[str], now: datetime) -> int:
        due = select(tasks).where(_due(now), named_by(tasks.c.user_id, prefixes)).order_by(tasks.c.due)
        if not await self._database.rows(due.limit(1)):  # as usual, and no write lock is needed
            return 0
        async with self._database.write() as connection:
            # Tasks that another process handles right now are skipped, and are not due afterwards.
            rows = (await connection.execute(due.limit(AT_ONCE).with_for_update(skip_locked=True))).all()
            for row in rows:
                same = update(tasks).where(tasks.c.id == row.id)
                await connection.execute(same.values(reminded=row.due))
                payload = {"task": row.id, "due": row.due.isoformat()}
                await self._queue.add(connection, REMIND, row.user_id, payload, now)
        return len(rows)

    async def waiting(
        self, prefixes: Collection[str], now: datetime, without: Collection[str] = ()
    ) -> Sequence[str]:
        """Return the ids of jobs that may run now, oldest first, without people of the prefixes `without`."""
        due = and_(work.c.kind == REMIND, claimable(now), named_by(work.c.user_id, prefixes))
        query = select(work.c.id).where(due, not_(named_by(work.c.user_id, without))).order_by(work.c.seq)
        return [row.id for row in await self._database.rows(query.limit(AT_ONCE))]

    async def reminder_of(self, job: Job) -> Reminder | None:
        """Return the reminder of the job; None if the task has been finished, postponed or deleted since."""
        query: Select[Any] = select(*_COLUMNS, tasks.c.place).where(
            tasks.c.id == job.payload["task"],
            tasks.c.user_id == job.user_id,
            tasks.c.status != "done",
            ~TASK_IS_HIDDEN,
        )
        row = next(iter(await self._database.rows(query)), None)
        if row is None or row.due is None or row.due.isoformat() != job.payload["due"]:
            return None
        asked = next(iter(await self._database.rows(_ASKED, {"task": row.id})), ("", ""))
        return Reminder(Task(*row[:-1]), Place.of_key(row.place), *asked)


_COLUMNS = [tasks.c[field.name] for field in fields(Task)]
_ASKED = (
    select(messages.c.conversation_id, message_origins.c.origin)
    .join(message_origins, message_origins.c.message_id == messages.c.id)
    .join(rests_on, rests_on.c.source_id == messages.c.id)
    .where(rests_on.c.derived_id == bindparam("task"), rests_on.c.how == "stated")
    .where(message_origins.c.posted == 0)
    .order_by(messages.c.seq.desc())
    .limit(1)
)


def _due(now: datetime) -> ColumnElement[bool]:
    """Match tasks that are due, not `TOO_OLD`, not done, and not yet announced for this due time."""
    unannounced = or_(tasks.c.reminded.is_(None), tasks.c.reminded != tasks.c.due)
    return and_(
        tasks.c.due.between(now - TOO_OLD, now), tasks.c.status != "done", unannounced, ~TASK_IS_HIDDEN
    )


def named_by(user: ColumnElement[str], prefixes: Collection[str]) -> ColumnElement[bool]:
    """Match users whose id one of the `prefixes` names."""
    families = (prefix for prefix in prefixes if _is_family(prefix))
    return or_(
        user.in_([prefix for prefix in prefixes if not _is_family(prefix)]),
        *(user.startswith(prefix, autoescape=True) for prefix in families),
    )


def longest_prefix(user: str, prefixes: Collection[str]) -> str | None:
    """Return the longest of the `prefixes` that names this user; None if none does."""
    naming = [one for one in prefixes if user == one or (_is_family(one) and user.startswith(one))]
    return max(naming, key=len, default=None)


def _is_family(prefix: str) -> bool:
    """Return whether the prefix names all ids that begin with it, and not one whole id."""
    return not prefix or prefix.endswith(":")
