"""The durable queue of background work.

A job is written in the transaction that accepts what it is for, and deleted when it is done. After a crash in
between it runs again, so handlers must be safe to run twice.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, false, func, insert, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.spans import new_id
from memory.sql.engine import Database
from memory.sql.tables import work

CLAIM = timedelta(minutes=2)
"""For so long a claimed job belongs to whoever claimed it."""
MAX_ATTEMPTS = 8
"""After these the job stays in the table, and `hachi doctor` reports it."""

REMIND = "remind"
"""The kind of job that announces a due task: see `memory.people.due_tasks`."""
CLAIMED_BY_ID = frozenset({REMIND})
"""Kinds that not every process can do."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    user_id: str
    payload: dict[str, Any]
    attempts: int
    about: str | None = None


class JobQueue:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        connection: AsyncConnection,
        kind: str,
        user: str,
        payload: Mapping[str, Any],
        now: datetime,
        *,
        about: str | None = None,
        ours: bool = False,
    ) -> str:
        """Write a job in the caller's transaction and return its id. Jobs of one kind with the same `about`
        can be done as one. With `ours` the caller has claimed it already: see `take`."""
        id = new_id()
        await connection.execute(
            insert(work).values(
                id=id,
                kind=kind,
                user_id=user,
                about=about,
                payload=dict(payload),
                attempts=1 if ours else 0,
                due_at=now + CLAIM if ours else now,
                created_at=now,
            )
        )
        return id

    async def take(self, id: str) -> Job | None:
        """A job that the caller has claimed; None where it has been done."""
        async with self._database.read() as connection:
            row = (await connection.execute(select(work).where(work.c.id == id))).first()
        return None if row is None else _job(row)

    async def claim(
        self,
        now: datetime,
        id: str | None = None,
        *,
        slow: str | None = None,
        besides: Collection[str] | None = (),
        slow_besides: Collection[str] | None = (),
    ) -> Job | None:
        """Claim the oldest job that is due, or the one with this id, for `CLAIM`. None where there is none.

        Jobs of the kind `slow` come after all others. Skips the users `besides`, and of `slow` jobs the users
        `slow_besides`; None skips all such jobs."""
        due = select(work.c.seq).where(work.c.due_at <= now, work.c.attempts < MAX_ATTEMPTS)
        if id is not None:
            due = due.where(work.c.id == id)
        else:
            is_slow = work.c.kind == (slow or "")
            allowed: list[ColumnElement[bool]] = [false()]
            if besides is not None:
                allowed.append(and_(not_(is_slow), work.c.user_id.not_in(besides)))
            if slow_besides is not None:
                allowed.append(and_(is_slow, work.c.user_id.not_in(slow_besides)))
            due = due.where(work.c.kind.not_in(CLAIMED_BY_ID), or_(*allowed))
            due = due.order_by(is_slow, work.c.seq).limit(1)
        async with (
            self._database.read() as connection
        ):  # mostly nothing is due, and no lock is taken for that
            if (await connection.execute(due)).first() is None:
                return None
        async with self._database.write() as connection:
            taken = (
                update(work)
                .where(work.c.seq == due.with_for_update(skip_locked=True).scalar_subquery())
                .values(due_at=now + CLAIM, attempts=work.c.attempts + 1)
                .returning(work)
            )
            row = (await connection.execute(taken)).first()
        return None if row is None else _job(row)

    async def renew(self, job: Job, now: datetime) -> None:
        """Prolong the claim by `CLAIM`."""
        async with self._database.write() as connection:
            await connection.execute(update(work).where(work.c.id == job.id).values(due_at=now + CLAIM))

    async def waiting(self, kind: str, user: str) -> bool:
        """Whether a job of this kind of this user's is still to be done."""
        query = select(work.c.seq).where(
            work.c.kind == kind, work.c.user_id == user, work.c.attempts < MAX_ATTEMPTS
        )
        async with self._database.read() as connection:
            return (await connection.execute(query.limit(1))).first() is not None

    async def newest(self, kind: str, about: str) -> int:
        """The `seq` of the newest job about this; 0 where there is none. See `done_about`."""
        query = select(func.max(work.c.seq)).where(work.c.kind == kind, work.c.about == about)
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar() or 0

    async def done_about(self, kind: str, about: str, upto: int) -> None:
        """All jobs about this, as far as the `seq` `upto`, have been done as one."""
        query = delete(work).where(work.c.kind == kind, work.c.about == about, work.c.seq <= upto)
        async with self._database.write() as connection:
            await connection.execute(query)

    async def done(self, *ids: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(work).where(work.c.id.in_(ids)))

    async def failed(self, job: Job, error: str, now: datetime) -> None:
        """Schedule the next attempt: after 1 s, 4 s, 16 s … an hour at most."""
        wait = timedelta(seconds=min(4 ** (job.attempts - 1), 3600))
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.id == job.id)
                .values(due_at=now + wait, last_error=error.replace("\x00", "")[:500])
            )
            if job.about is not None:  # jobs about the same would fail alike
                others = (work.c.kind == job.kind, work.c.about == job.about, work.c.due_at < now + wait)
                await connection.execute(update(work).where(*others).values(due_at=now + wait))

    async def release(self, now: datetime) -> None:
        """Make due what a process that is gone had claimed. Only for a process that knows it is alone."""
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.attempts < MAX_ATTEMPTS, work.c.last_error.is_(None))
                .values(due_at=now)
            )

    async def counts(self) -> tuple[int, int]:
        """How many jobs wait, and how many were given up."""
        query = select(
            func.count().filter(work.c.attempts < MAX_ATTEMPTS),
            func.count().filter(work.c.attempts >= MAX_ATTEMPTS),
        ).select_from(work)
        async with self._database.read() as connection:
            waiting, stuck = (await connection.execute(query)).one()
        return waiting, stuck


def _job(row: Any) -> Job:
    return Job(row.id, row.kind, row.user_id, row.payload, row.attempts, row.about)
