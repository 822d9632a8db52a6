"""The durable queue of what is done after the reply. A piece of work is written in the transaction that
accepts what it is for, and deleted when it is done: a crash in between does it again, so handlers must be
safe to run twice."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.spans import new_id
from memory.sql.engine import Database
from memory.sql.tables import work

CLAIM = timedelta(minutes=2)
"""How long a piece is left to whoever took it before another may."""
MAX_ATTEMPTS = 8
"""Then it is left where it is, visible in `hachi doctor`, for a person to look at."""

REMIND = "remind"
"""The kind of work that announces a task that is due: see `memory.people.due_tasks`."""
APART = frozenset({REMIND})
"""Kinds that not every process can do: each is taken by its id."""


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
        """Write a piece of work in the caller's transaction; `about` what, where pieces of this kind about
        the same can be done as one. With `ours` it is claimed already, by whoever writes it: see `take`."""
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
        """A piece that is ours; None where it has been done."""
        async with self._database.read() as connection:
            row = (await connection.execute(select(work).where(work.c.id == id))).first()
        return None if row is None else _work(row)

    async def claim(
        self,
        now: datetime,
        id: str | None = None,
        *,
        besides: Collection[str] = (),
        only: str | None = None,
        but: str | None = None,
    ) -> Job | None:
        """Take the oldest piece that is due, or the one of this id; it is ours for `CLAIM`. Of users
        `besides` these; `only` of this kind, or of any `but` this one."""
        due = select(work.c.seq).where(work.c.due_at <= now, work.c.attempts < MAX_ATTEMPTS)
        due = due.where(work.c.user_id.not_in(besides)) if besides else due
        due = due.where(work.c.kind == only) if only else due
        due = due.where(work.c.kind != but) if but else due
        due = due.where(work.c.kind.not_in(APART)) if id is None else due
        due = due.order_by(work.c.seq).limit(1) if id is None else due.where(work.c.id == id)
        async with self._database.read() as connection:  # most looks find nothing: no write lock for them
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
        return None if row is None else _work(row)

    async def renew(self, piece: Job, now: datetime) -> None:
        """It is ours for another `CLAIM`."""
        async with self._database.write() as connection:
            await connection.execute(update(work).where(work.c.id == piece.id).values(due_at=now + CLAIM))

    async def waiting(self, kind: str, user: str) -> bool:
        """Whether a piece of this kind of this user's is still to be done."""
        query = select(work.c.seq).where(
            work.c.kind == kind, work.c.user_id == user, work.c.attempts < MAX_ATTEMPTS
        )
        async with self._database.read() as connection:
            return (await connection.execute(query.limit(1))).first() is not None

    async def newest(self, kind: str, about: str) -> int:
        """How far the pieces about this go; 0 where there is none. See `done_about`."""
        query = select(func.max(work.c.seq)).where(work.c.kind == kind, work.c.about == about)
        async with self._database.read() as connection:
            return (await connection.execute(query)).scalar() or 0

    async def done_about(self, kind: str, about: str, upto: int) -> None:
        """All pieces about this, as far as `upto`, have been done as one, also those that were given up."""
        query = delete(work).where(work.c.kind == kind, work.c.about == about, work.c.seq <= upto)
        async with self._database.write() as connection:
            await connection.execute(query)

    async def done(self, *ids: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(work).where(work.c.id.in_(ids)))

    async def failed(self, piece: Job, error: str, now: datetime) -> None:
        """Put it back, to be tried again later each time: 1 s, 4 s, 16 s … an hour at most."""
        wait = timedelta(seconds=min(4 ** (piece.attempts - 1), 3600))
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.id == piece.id)
                .values(due_at=now + wait, last_error=error.replace("\x00", "")[:500])
            )
            if piece.about is not None:  # the others would meet the same fault
                others = (work.c.kind == piece.kind, work.c.about == piece.about, work.c.due_at < now + wait)
                await connection.execute(update(work).where(*others).values(due_at=now + wait))

    async def release(self, now: datetime) -> None:
        """Make due whatever was claimed by a process that is gone. Only for one who knows to be alone."""
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.attempts < MAX_ATTEMPTS, work.c.last_error.is_(None))
                .values(due_at=now)
            )

    async def counts(self) -> tuple[int, int]:
        """(waiting, given up)."""
        query = select(
            func.count().filter(work.c.attempts < MAX_ATTEMPTS),
            func.count().filter(work.c.attempts >= MAX_ATTEMPTS),
        ).select_from(work)
        async with self._database.read() as connection:
            waiting, stuck = (await connection.execute(query)).one()
        return waiting, stuck


def _work(row: Any) -> Job:
    return Job(row.id, row.kind, row.user_id, row.payload, row.attempts, row.about)
