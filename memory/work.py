"""The durable queue of what is done after the reply. A piece of work is written in the transaction that
accepts what it is for, and deleted when it is done: a crash in between does it again, so handlers must be
safe to run twice."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Database
from memory.tables import work

CLAIM = timedelta(minutes=2)
"""How long a piece is left to whoever took it before another may."""
MAX_ATTEMPTS = 8
"""Then it is left where it is, visible in `hachi doctor`, for a person to look at."""


@dataclass(frozen=True, slots=True)
class Work:
    id: str
    kind: str
    user_id: str
    payload: dict[str, Any]
    attempts: int


Handler = Callable[[Work], Awaitable[None]]


class WorkQueue:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, connection: AsyncConnection, kind: str, user: str, payload: Mapping[str, Any], now: datetime
    ) -> str:
        """Write a piece of work in the caller's transaction."""
        id = str(uuid4())
        await connection.execute(
            insert(work).values(
                id=id, kind=kind, user_id=user, payload=dict(payload), due_at=now, created_at=now
            )
        )
        return id

    async def claim(
        self, now: datetime, id: str | None = None, *, besides: Collection[str] = ()
    ) -> Work | None:
        """Take the oldest piece that is due, of users `besides` these, or the one of this id; it is ours for
        `CLAIM`."""
        due = select(work.c.seq).where(work.c.due_at <= now, work.c.attempts < MAX_ATTEMPTS)
        due = due.where(work.c.user_id.not_in(besides)) if besides else due
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
        if row is None:
            return None
        return Work(row.id, row.kind, row.user_id, row.payload, row.attempts)

    async def done(self, *ids: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(work).where(work.c.id.in_(ids)))

    async def failed(self, piece: Work, error: str, now: datetime) -> None:
        """Put it back, to be tried again later each time: 1 s, 4 s, 16 s … an hour at most."""
        wait = timedelta(seconds=min(4 ** (piece.attempts - 1), 3600))
        async with self._database.write() as connection:
            await connection.execute(
                update(work)
                .where(work.c.id == piece.id)
                .values(due_at=now + wait, last_error=error.replace("\x00", "")[:500])
            )

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
