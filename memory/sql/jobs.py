"""The durable queue of background work.

A job is written in the transaction that accepts the work, and deleted when it is done. After a crash in
between it runs again, so handlers must be safe to run twice.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.spans import new_id
from memory.sql.engine import Database
from memory.sql.tables import work

CLAIM = timedelta(minutes=2)
"""How long a claimed job belongs to the process that claimed it."""
MAX_ATTEMPTS = 8
"""After this many attempts the job stays in the table, and `hachi doctor` reports it."""

REMIND = "remind"
"""The kind of job that announces a due task: see `memory.people.due_tasks`."""
CLAIMED_BY_ID = frozenset({REMIND})
"""Kinds that only some processes can handle. Workers claim them by id."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    user_id: str
    payload: dict[str, Any]
    attempts: int
    about: str | None = None


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job that no process has claimed."""

    id: str
    kind: str
    user_id: str


class JobQueue:
    def __init__(self, database: Database) -> None:
        self._database = database

    @staticmethod
    async def add(
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
        can be handled as one. With `ours` the caller claims it at once: see `take`."""
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
        """A job that the caller has claimed; None if it is done."""
        async with self._database.read() as connection:
            row = (await connection.execute(select(work).where(work.c.id == id))).first()
        return None if row is None else _job(row)

    async def due(
        self,
        now: datetime,
        limit: int,
        *,
        besides: Collection[str] = (),
        last: str = "",
        besides_last: Collection[str] = (),
    ) -> list[DueJob]:
        """The oldest jobs that may be claimed, except those of the users in `besides`. Jobs of the kind
        `last` come after all others, and also leave out the users in `besides_last`."""
        is_last = work.c.kind == last
        query = (
            select(work.c.id, work.c.kind, work.c.user_id)
            .where(*_claimable(now), work.c.kind.not_in(CLAIMED_BY_ID), work.c.user_id.not_in(besides))
            .where(or_(not_(is_last), work.c.user_id.not_in(besides_last)))
            .order_by(is_last, work.c.seq)
            .limit(limit)
        )
        async with self._database.read() as connection:
            return [DueJob(*row) for row in await connection.execute(query)]

    async def claim(self, now: datetime, id: str | None = None) -> Job | None:
        """Claim the job with this id, or the oldest that is due. None if no such job is due."""
        ids = [id] if id else [job.id for job in await self.due(now, 1)]
        return next(iter(await self.claim_all(now, ids)), None)

    async def claim_all(self, now: datetime, ids: Collection[str]) -> list[Job]:
        """Claim those of these jobs that are still due, for `CLAIM`. Returns them, oldest first."""
        if not ids:
            return []
        free = select(work.c.seq).where(work.c.id.in_(ids), *_claimable(now))
        claimed = (
            update(work)
            .where(work.c.seq.in_(free.with_for_update(skip_locked=True)))
            .values(due_at=now + CLAIM, attempts=work.c.attempts + 1)
            .returning(work)
        )
        async with self._database.write() as connection:
            rows = (await connection.execute(claimed)).all()
        return [_job(row) for row in sorted(rows, key=lambda row: row.seq)]

    async def renew(self, job: Job, now: datetime) -> None:
        """Extend the claim by `CLAIM`."""
        async with self._database.write() as connection:
            await connection.execute(update(work).where(work.c.id == job.id).values(due_at=now + CLAIM))

    async def waiting(self, kind: str, user: str) -> bool:
        """Whether a job of this kind and user is not done yet."""
        query = select(work.c.seq).where(
            work.c.kind == kind, work.c.user_id == user, work.c.attempts < MAX_ATTEMPTS
        )
        async with self._database.read() as connection:
            return (await connection.execute(query.limit(1))).first() is not None

    async def newest(self, kind: str, about: str) -> int:
        """The `seq` of the newest job with this `about`; 0 if none exists. See `finish`."""
        query = select(func.max(work.c.seq)).where(work.c.kind == kind, work.c.about == about)
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar() or 0

    async def finish(self, connection: AsyncConnection, job: Job, newest: int) -> None:
        """Delete a job in the caller's transaction, and the jobs of its kind with the same `about` up to the
        `seq` `newest`, including those out of attempts: the job has covered them."""
        same = and_(work.c.kind == job.kind, work.c.about == job.about, work.c.seq <= newest)
        await connection.execute(delete(work).where(or_(work.c.id == job.id, same)))

    async def done(self, *ids: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(work).where(work.c.id.in_(ids)))

    async def failed(self, job: Job, error: str, now: datetime) -> None:
        """Schedule the next attempt: after 1 s, 4 s, 16 s … at most an hour."""
        wait = timedelta(seconds=min(4 ** (job.attempts - 1), 3600))
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.id == job.id)
                .values(due_at=now + wait, last_error=error.replace("\x00", "")[:500])
            )
            if job.about is not None:  # jobs with the same `about` would fail in the same way
                others = (work.c.kind == job.kind, work.c.about == job.about, work.c.due_at < now + wait)
                await connection.execute(update(work).where(*others).values(due_at=now + wait))

    async def release(self, now: datetime) -> None:
        """Make the jobs due that a dead process had claimed. Call it only if no other process runs."""
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.attempts < MAX_ATTEMPTS, work.c.last_error.is_(None))
                .values(due_at=now)
            )

    async def counts(self) -> tuple[int, int]:
        """The number of waiting jobs, and of those that used up `MAX_ATTEMPTS`."""
        query = select(
            func.count().filter(work.c.attempts < MAX_ATTEMPTS),
            func.count().filter(work.c.attempts >= MAX_ATTEMPTS),
        ).select_from(work)
        async with self._database.read() as connection:
            waiting, stuck = (await connection.execute(query)).one()
        return waiting, stuck


def _claimable(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return work.c.due_at <= now, work.c.attempts < MAX_ATTEMPTS


def _job(row: Any) -> Job:
    return Job(row.id, row.kind, row.user_id, row.payload, row.attempts, row.about)
