"""The durable queue of background work.

A job is written in the transaction that accepts the work, and deleted when it is done. After a crash in
between it runs again, so handlers must be safe to run twice.

A claim names its process and ends after `CLAIM`; a process that works on a job renews it. A claim that ended
without a result is a crash of the job's process. Crashes delay a job and never give it up; failures do, after
`MAX_ATTEMPTS`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from memory.errors import MemoryFault, NotFound
from memory.process.identity import is_gone, this_process
from memory.process.spans import new_id
from memory.sql.engine import Database
from memory.sql.memory_rows import begins
from memory.sql.tables import Utc, work

log = logging.getLogger("hachi.worker")

CLAIM = timedelta(seconds=30)
"""How long a claimed job belongs to the process that claimed it, unless that renews the claim."""
RENEW_SECONDS = 10.0
"""How often a process renews the claim of a job that it works on."""
MAX_ATTEMPTS = 8
"""After this many failures the job stays in the table, and `hachi doctor` reports it."""
SUSPECT = 2
"""From this many crashes on, a job runs beside no other such job, and waits longer after each."""

REMIND = "remind"
"""The kind of job that announces a due task: see `memory.people.due_tasks`."""
ANSWER = "answer"
"""The kind of job that answers a message of a chat platform: see `memory.sql.deliveries`."""
POSTS = "posts"
"""The kind of job that makes the posts of a reply on a chat platform follow the stored one."""
CLAIMED_BY_ID = frozenset({REMIND, ANSWER, POSTS})
"""Kinds that only some processes can handle, whose workers do not claim them."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: str
    user_id: str
    payload: dict[str, Any]
    attempts: int
    """Which attempt this is: one more than the failures so far."""
    about: str | None = None
    created_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job that no process has claimed."""

    id: str
    kind: str
    user_id: str
    suspect: bool
    """Whether it may be what ended its processes: see `SUSPECT`."""


@dataclass(frozen=True, slots=True)
class Crash:
    """A claim that ended without a result."""

    id: str
    kind: str
    times: int
    due_at: datetime


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as `hachi jobs list` shows it, without what it is about."""

    id: str
    kind: str
    user_id: str
    state: Literal["waiting", "running", "given up"]
    failures: int
    crashes: int
    due_at: datetime
    created_at: datetime
    last_error: str | None


class JobQueue:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._process = this_process()

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
        due: datetime | None = None,
    ) -> Job:
        """Write a job in the caller's transaction. Jobs of one kind with the same `about` can be handled as
        one. With `ours` it is claimed at once: the caller handles it after the commit, and if this process
        ends before, another one does. It is `due` now unless another time is given."""
        job = Job(new_id(), kind, user, dict(payload), 1, about)
        row = {
            "id": job.id,
            "kind": kind,
            "user_id": user,
            "about": about,
            "payload": job.payload,
            "claimed_by": this_process() if ours else None,
            "due_at": now + CLAIM if ours else due or now,
            "created_at": now,
        }
        await connection.execute(insert(work), row)
        return job

    async def take(self, id: str) -> Job | None:
        """A job that the caller has claimed; None if it is done."""
        return next(map(_job, await self._database.rows(select(work).where(work.c.id == id))), None)

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
        `last` come after all others, and also leave out the users in `besides_last`. Suspects come later."""
        left_out = {"besides": list(besides), "last": last, "besides_last": list(besides_last)}
        return [
            DueJob(*row) for row in await self._database.rows(_DUE, {"now": now, "most": limit} | left_out)
        ]

    async def claim(self, now: datetime, id: str | None = None) -> Job | None:
        """Claim the job with this id, or the oldest that is due. None if no such job is due."""
        ids = [id] if id else [job.id for job in await self.due(now, 1)]
        return next(iter(await self.claim_all(now, ids)), None)

    async def claim_all(self, now: datetime, ids: Collection[str]) -> list[Job]:
        """Claim those of these jobs that are still due, for `CLAIM`. Returns them, oldest first."""
        if not ids:
            return []
        free = select(work.c.seq).where(work.c.id.in_(ids), claimable(now))
        claimed = (
            update(work)
            .where(work.c.seq.in_(free.with_for_update(skip_locked=True)))
            .values(due_at=now + CLAIM, claimed_by=self._process)
            .returning(work)
        )
        rows = await self._database.rows(claimed)
        return [_job(row) for row in sorted(rows, key=lambda row: row.seq)]

    async def claim_of(self, kinds: Collection[str], prefix: str, now: datetime) -> list[Job]:
        """Claim the due jobs of these kinds whose user's id begins with `prefix`. Returns them, oldest
        first."""
        theirs = func.substr(work.c.user_id, 1, len(prefix)) == prefix  # LIKE on SQLite ignores case
        query = select(work.c.id).where(work.c.kind.in_(kinds), theirs, claimable(now))
        return await self.claim_all(now, [row.id for row in await self._database.rows(query)])

    async def renew(self, kind: str) -> None:
        """Renew the claims of this process on jobs of the kind."""
        ours = and_(work.c.kind == kind, work.c.claimed_by == self._process)
        await self._set(ours, due_at=self._clock() + CLAIM)

    @asynccontextmanager
    async def working_on(self, job: Job) -> AsyncIterator[None]:
        """Renew the claim while the block runs. If the block is cancelled, give the job back."""
        renewing = asyncio.create_task(self._renew(job), name="hachi claim")
        try:
            yield
        except asyncio.CancelledError:
            with suppress(MemoryFault):
                await self._set(work.c.id == job.id, claimed_by=None, due_at=self._clock())
            raise
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def _renew(self, job: Job) -> None:
        ours = and_(work.c.id == job.id, work.c.claimed_by == self._process)
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(MemoryFault):  # another try follows before the claim ends
                await self._set(ours, due_at=self._clock() + CLAIM)

    async def _set(self, which: ColumnElement[bool], **values: Any) -> int:
        """Change these jobs. Returns how many."""
        return await self._database.run(update(work).where(which).values(**values))

    async def take_up(self, now: datetime) -> list[Crash]:
        """Free the jobs whose claim has ended, and those of a process of this host that has ended. Returns
        those that crashed, and logs them. After its first crash a job is due at once, later after 64 s,
        256 s … at most an hour.

        A reminder waits for the end of its claim, since it may have been sent.
        """
        crashes = []
        for row in await self._database.rows(_CLAIMED):
            ours = row.claimed_by == self._process
            dead = not ours and row.kind != REMIND and is_gone(row.claimed_by)
            if row.due_at > now and not dead:
                continue
            same = and_(work.c.id == row.id, work.c.claimed_by == row.claimed_by, work.c.due_at == row.due_at)
            if ours:  # claimed and then not worked on, as when the database was away
                await self._set(same, claimed_by=None)
                continue
            crash = Crash(row.id, row.kind, row.crashes + 1, now + _crash_wait(row.crashes + 1))
            error = f"its process ended while it ran ({crash.times} times)"
            freed = {"claimed_by": None, "due_at": crash.due_at, "crashes": crash.times, "last_error": error}
            if await self._set(same, **freed):
                crashes.append(crash)
                wait = (crash.due_at - now).total_seconds()
                log.warning("work %s (%s): %s; it runs again in %g s", crash.id, crash.kind, error, wait)
        return crashes

    async def waiting(self, kind: str, user: str) -> bool:
        """Whether a job of this kind and user is not done yet."""
        query = select(work.c.seq).where(
            work.c.kind == kind, work.c.user_id == user, work.c.attempts < MAX_ATTEMPTS
        )
        return bool(await self._database.rows(query.limit(1)))

    @staticmethod
    async def expect(
        connection: AsyncConnection,
        kind: str,
        user: str,
        payload: Mapping[str, Any],
        now: datetime,
        *,
        about: str,
        due: "When | None" = None,
        given: Mapping[str, Any] | None = None,
    ) -> datetime:
        """Make the waiting job with this `about` due at another time, which follows from what is `given`,
        with this payload, in the caller's transaction; where none waits that has not failed, add one.
        Without a time a job that waits stays as it is, and a new one is due now. Returns when it is due."""
        move, add = due or _NOW
        values = {
            "new_payload": dict(payload),
            "new_about": about,
            "new_kind": kind,
            "now": now,
            **(given or {}),
        }
        at: datetime | None = await connection.scalar(move, values)
        if at is None:
            row = {"new_id": new_id(), "new_user_id": user}
            at = (await connection.execute(add, values | row)).scalar_one()
        return at

    @staticmethod
    async def finish(connection: AsyncConnection, job: Job) -> None:
        """Delete a job in the caller's transaction, and the jobs of its kind with the same `about`, including
        those out of attempts: the job has covered them."""
        same = and_(work.c.kind == job.kind, work.c.about == job.about)
        await connection.execute(delete(work).where(or_(work.c.id == job.id, same)))

    async def done(self, *ids: str) -> None:
        await self._database.run(delete(work).where(work.c.id.in_(ids)))

    async def failed(self, job: Job, error: str, now: datetime) -> None:
        """Count a failure and schedule the next attempt: after 1 s, 4 s, 16 s … at most an hour."""
        wait = timedelta(seconds=min(4 ** (job.attempts - 1), 3600))
        failure = {"attempts": job.attempts, "last_error": error.replace("\x00", "")[:500]}
        async with self._database.write() as connection:
            same = update(work).where(work.c.id == job.id)
            await connection.execute(same.values(**failure, due_at=now + wait, claimed_by=None))
            if job.about is not None:  # jobs with the same `about` would fail in the same way
                others = (work.c.kind == job.kind, work.c.about == job.about, work.c.due_at < now + wait)
                await connection.execute(update(work).where(*others).values(due_at=now + wait))

    async def postpone(self, job: Job, until: datetime) -> None:
        """Give a claimed job back, which nobody worked on."""
        await self._set(work.c.id == job.id, claimed_by=None, due_at=until)

    async def hasten(self, kind: str, now: datetime) -> int:
        """Make the waiting jobs of a kind due that have not failed. Returns how many."""
        waits = work.c.attempts == 0, work.c.claimed_by.is_(None), work.c.due_at > now
        return await self._set(and_(work.c.kind == kind, *waits), due_at=now)

    async def listed(self, now: datetime, *, given_up: bool = False) -> list[ListedJob]:
        """The jobs, oldest first; with `given_up` those alone."""
        query = select(work).order_by(work.c.seq)
        query = query.where(work.c.attempts >= MAX_ATTEMPTS) if given_up else query
        return [_listed(row, now) for row in await self._database.rows(query)]

    async def named(self, id: str, now: datetime) -> ListedJob:
        """The job with this id, or with this prefix of eight or more characters. Raises NotFound."""
        query = select(work).where(begins(work.c.id, id))
        found = [_listed(row, now) for row in await self._database.rows(query)]
        if len(found) != 1:
            raise NotFound(f"no job {id!r}; `hachi jobs list` shows the ids")
        return found[0]

    async def retry(self, ids: Collection[str], now: datetime) -> int:
        """Make these jobs due now, as if they had never failed; not one that runs. Returns how many."""
        idle = and_(work.c.id.in_(ids), work.c.claimed_by.is_(None))
        return await self._set(idle, attempts=0, crashes=0, due_at=now)

    async def counts(self) -> tuple[int, int]:
        """The number of jobs that are due, claimed or to be tried again, and of those that used up
        `MAX_ATTEMPTS`. What waits for its time is as it should be."""
        late = or_(work.c.due_at <= self._clock(), work.c.claimed_by.is_not(None), work.c.attempts > 0)
        query = select(
            func.count().filter(work.c.attempts < MAX_ATTEMPTS, late),
            func.count().filter(work.c.attempts >= MAX_ATTEMPTS),
        ).select_from(work)
        [[waiting, given_up]] = await self._database.rows(query)
        return waiting, given_up


def claimable(now: Any) -> ColumnElement[bool]:
    """True for jobs that are due, claimed by nobody and not given up."""
    return and_(work.c.due_at <= now, work.c.claimed_by.is_(None), work.c.attempts < MAX_ATTEMPTS)


When = tuple[ReturningUpdate[Any], ReturningInsert[Any]]
"""When an expected job is due: see `when`."""


def when(due: ColumnElement[datetime] | None = None) -> When:
    """The statements of `JobQueue.expect` for jobs that are `due` at this expression, which may have
    parameters beside "now"; None is now, and leaves a job that waits as it is. Building them takes longer
    than running them, so they are built once."""
    names = ("id", "kind", "user_id", "payload", "about")
    new = {name: bindparam(f"new_{name}", type_=work.c[name].type) for name in names}
    now = bindparam("now", type_=Utc())
    waits = work.c.claimed_by.is_(None), work.c.attempts + work.c.crashes == 0
    same = update(work).where(work.c.kind == new["kind"], work.c.about == new["about"], *waits)
    moved = {"due_at": work.c.due_at} if due is None else {"payload": new["payload"], "due_at": due}
    added = insert(work).values(**new, created_at=now, due_at=now if due is None else due)
    return same.values(**moved).returning(work.c.due_at), added.returning(work.c.due_at)


_NOW = when()

# Built once, since a worker runs them after every turn: building them takes longer than running them.
_IS_LAST, _SUSPECT = work.c.kind == bindparam("last"), work.c.crashes >= SUSPECT
_DUE = (
    select(work.c.id, work.c.kind, work.c.user_id, _SUSPECT)
    .where(claimable(bindparam("now", type_=Utc())), work.c.kind.not_in(CLAIMED_BY_ID))
    .where(work.c.user_id.not_in(bindparam("besides", expanding=True)))
    .where(or_(not_(_IS_LAST), work.c.user_id.not_in(bindparam("besides_last", expanding=True))))
    .order_by(_IS_LAST, _SUSPECT, work.c.seq)
    .limit(bindparam("most"))
)
_CLAIMED = select(work).where(work.c.claimed_by.is_not(None))


def _crash_wait(times: int) -> timedelta:
    return timedelta(seconds=min(4 ** (times + 1), 3600) if times >= SUSPECT else 0)


def _job(row: Any) -> Job:
    return Job(row.id, row.kind, row.user_id, row.payload, row.attempts + 1, row.about, row.created_at)


def _listed(row: Any, now: datetime) -> ListedJob:
    running = row.claimed_by is not None and row.due_at > now
    state: Literal["waiting", "running", "given up"] = "running" if running else "waiting"
    return ListedJob(
        id=row.id,
        kind=row.kind,
        user_id=row.user_id,
        state="given up" if row.attempts >= MAX_ATTEMPTS else state,
        failures=row.attempts,
        crashes=row.crashes,
        due_at=row.due_at,
        created_at=row.created_at,
        last_error=row.last_error,
    )
