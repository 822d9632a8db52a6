"""Queue background work durably.

A job is written in the transaction that accepts the work, and deleted when it is done. After a crash it runs
again, so handlers must be safe to run twice.

A claim is a token that names its process. It ends after `CLAIM` by the database's clock unless it is renewed.
A transaction that writes for a job checks the token first, so a process that has lost its claim writes
nothing more. A claim that ended without a result counts as a crash. Crashes only delay a job; after
`MAX_ATTEMPTS` failures it is given up.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, not_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.errors import MemoryFault, NotFound
from memory.process.identity import this_process
from memory.process.spans import new_id
from memory.sql.engine import Database
from memory.sql.engine.fence import fenced, lift_fence, unfenced
from memory.sql.jobs.job import MAX_ATTEMPTS, SUSPECT, Job, ListedJob, StaleClaim, to_job
from memory.sql.jobs.statements import (
    ADD,
    ADD_CLAIMED,
    ANY_DUE,
    BEFORE,
    CLAIM_DUE,
    CLAIM_ENDED,
    CLAIM_ENDS,
    HOLDS,
    LISTED,
    NOW_DUE,
    When,
    claimable,
)
from memory.sql.memories.memory_rows import begins
from memory.sql.tables import work

log = logging.getLogger("hachi.worker")

RENEW_SECONDS = 10.0
"""How often a process renews the claim of a job that it works on."""


class JobQueue:
    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        process = self._process = this_process()
        self._ours = func.substr(work.c.claimed_by, 1, len(process) + 1) == f"{process}#"
        """True for the jobs that this process has claimed."""
        self._working: set[str] = set()
        """The ids of the jobs that this process is working on."""

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
        one. With `ours` it is claimed at once, and the caller handles it after the commit. Without `due` it
        is due now."""
        claim = _new_claim(this_process()) if ours else None
        job = Job(new_id(), kind, user, dict(payload), 1, about, claim=claim)
        row = {
            "id": job.id,
            "kind": kind,
            "user_id": user,
            "about": about,
            "payload": job.payload,
            "claimed_by": claim,
            "created_at": now,
        }
        await connection.execute(ADD_CLAIMED if ours else ADD, row if ours else row | {"due_at": due or now})
        return job

    async def take(self, id: str) -> Job | None:
        """Return a job that this process has claimed. None if it is done or claimed by another process."""
        mine = select(work).where(work.c.id == id, self._ours)
        return next(map(to_job, await self._database.rows(mine)), None)

    async def claim_due(
        self, now: datetime, most: int, *, last: str = "", suspects: bool = True
    ) -> list[Job]:
        """Claim the oldest due jobs: everybody's first comes before anybody's second, and the kind `last`
        comes last. Of suspects at most one is claimed, and none unless `suspects`."""
        given = {"now": now, "most": most, "last": last, "suspects": suspects}
        given["claim"] = _new_claim(self._process)
        if self._database.sqlite and not await self._database.rows(ANY_DUE, {"now": now}):
            return []  # no write transaction if nothing is due
        rows = await self._database.rows(CLAIM_DUE, given)
        return [to_job(row) for row in sorted(rows, key=lambda row: (row.kind == last, row.seq))]

    async def claim(self, now: datetime, id: str) -> Job | None:
        """Claim the job with this id. None if it is not due."""
        return next(iter(await self._claim(work.c.id == id, now)), None)

    async def claim_of(self, kinds: Collection[str], prefix: str, now: datetime) -> list[Job]:
        """Claim the due jobs of these kinds whose user's id begins with `prefix`. Of jobs with the same
        `about` only the oldest is claimed, and none while one of them is already claimed."""
        theirs = work.c.user_id.startswith(prefix, autoescape=True)
        return await self._claim(and_(work.c.kind.in_(kinds), theirs, not_(BEFORE)), now)

    async def _claim(self, which: ColumnElement[bool], now: datetime) -> list[Job]:
        free = select(work.c.seq).where(which, claimable(now))
        if self._database.sqlite and not await self._database.rows(free.limit(1)):
            return []
        claimed = (
            update(work)
            .where(work.c.seq.in_(free.with_for_update(skip_locked=True)))
            .values(due_at=CLAIM_ENDS, claimed_by=_new_claim(self._process))
            .returning(work)
        )
        rows = await self._database.rows(claimed)
        return [to_job(row) for row in sorted(rows, key=lambda row: row.seq)]

    async def renew(self, kind: str) -> None:
        """Renew the claims of this process on jobs of the kind."""
        await self._set(and_(work.c.kind == kind, self._ours), due_at=CLAIM_ENDS)

    @asynccontextmanager
    async def working_on(self, job: Job) -> AsyncIterator[None]:
        """Renew the claim while the block runs. If the claim is lost, writes of this task raise StaleClaim.
        If the block is cancelled, release the job."""
        task = asyncio.current_task()
        assert task
        renewing = asyncio.create_task(self._renew(job, task), name="hachi claim")
        self._working.add(job.id)
        try:
            with fenced(partial(self.check, job)):
                yield
        except asyncio.CancelledError:
            if renewing.done() and not task.uncancel():
                raise _taken_over(job) from None
            with suppress(MemoryFault):
                await self._set(_held(job), claimed_by=None, due_at=self._clock())
            raise
        finally:
            self._working.discard(job.id)
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    @staticmethod
    async def check(job: Job, connection: AsyncConnection) -> None:
        """Raise StaleClaim unless the job's claim is unchanged, and lock it until the transaction ends."""
        if job.claim and await connection.scalar(HOLDS, {"job": job.id, "claim": job.claim}) is None:
            raise _taken_over(job)

    async def _renew(self, job: Job, task: asyncio.Task[Any]) -> None:
        """Renew the claim every `RENEW_SECONDS`. Cancel the task if another process has claimed the job."""
        theirs = select(work.c.seq).where(work.c.id == job.id, work.c.claimed_by != job.claim)
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(MemoryFault):  # there is another attempt before the claim ends
                if not await self._set(_held(job), due_at=CLAIM_ENDS) and await self._database.rows(theirs):
                    task.cancel()
                    return

    async def _set(self, which: ColumnElement[bool], **values: Any) -> int:
        """Change these jobs and return their number."""
        with unfenced():
            return await self._database.run(update(work).where(which).values(**values))

    async def take_up(self, now: datetime) -> None:
        """Release the jobs whose claim has ended, and log crashes. After its first crash a job is due at
        once, then after 64 s, 256 s … at most an hour."""
        for row in await self._database.rows(CLAIM_ENDED):
            if row.id in self._working:  # its claim is being renewed
                continue
            same = and_(work.c.id == row.id, work.c.claimed_by == row.claimed_by, work.c.due_at == row.due_at)
            if row.claimed_by.startswith(
                f"{self._process}#"
            ):  # our own claim, but nothing renews it: the database was unavailable
                await self._set(same, claimed_by=None)
                continue
            times = row.crashes + 1
            wait = min(4 ** (times + 1), 3600) if times >= SUSPECT else 0
            error = f"its process ended while it ran ({times} times)"
            due = now + timedelta(seconds=wait)
            if await self._set(same, claimed_by=None, due_at=due, crashes=times, last_error=error):
                log.warning("work %s (%s): %s; it runs again in %g s", row.id, row.kind, error, wait)

    async def waiting(self, kind: str, user: str) -> bool:
        """Return whether the user has an unfinished job of this kind."""
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
        due_values: Mapping[str, Any] | None = None,
    ) -> datetime:
        """Reschedule the pending job of this kind and `about` and set its payload, or add one, in the
        caller's transaction. `due` computes the time from the parameters in `due_values`; a job that is due
        stays due. Without `due` the job is due now, and a pending one keeps its payload. Returns the due
        time."""
        statement = NOW_DUE if due is None else due
        values = {"new_kind": kind, "new_about": about, "new_user_id": user, "now": now, **(due_values or {})}
        values["new_payload"] = dict(payload)
        at: datetime | None = None
        while at is None:  # the pending job was claimed at the same moment
            at = await connection.scalar(statement, values | {"new_id": new_id()})
        return at

    @staticmethod
    async def finish(connection: AsyncConnection, job: Job) -> None:
        """Delete a job, and those of its kind with the same `about`, in the caller's transaction."""
        same = and_(work.c.kind == job.kind, work.c.about == job.about)
        await connection.execute(delete(work).where(or_(work.c.id == job.id, same)))
        Database.after_commit(connection, lift_fence)

    async def done(self, job: Job) -> None:
        with unfenced():
            await self._database.run(delete(work).where(_held(job)))

    async def drop(self, id: str) -> None:
        """Delete a job, even if a process is working on it."""
        await self._database.run(delete(work).where(work.c.id == id))

    async def failed(self, job: Job, error: str, now: datetime) -> None:
        """Count a failure and schedule the next attempt: after 1 s, 4 s, 16 s … at most an hour."""
        wait = timedelta(seconds=min(4 ** (job.attempts - 1), 3600))
        failure = {"attempts": job.attempts, "last_error": error.replace("\x00", "")[:500]}
        with unfenced():
            async with self._database.write() as connection:
                same = update(work).where(_held(job))
                done = await connection.execute(same.values(**failure, due_at=now + wait, claimed_by=None))
                if (
                    job.about is not None and done.rowcount
                ):  # jobs with the same `about` would fail in the same way
                    others = (work.c.kind == job.kind, work.c.about == job.about, work.c.due_at < now + wait)
                    waiting = update(work).where(*others, work.c.claimed_by.is_(None))
                    await connection.execute(waiting.values(due_at=now + wait))

    async def postpone(self, job: Job, until: datetime, why: str | None = None) -> None:
        """Release a claimed job that has not been started. `why` says what it waits for."""
        told = {"last_error": why[:500]} if why else {}
        await self._set(_held(job), claimed_by=None, due_at=until, **told)

    async def hasten(self, kind: str, now: datetime) -> int:
        """Make all pending jobs of a kind that have not failed due now. Returns how many."""
        waits = work.c.attempts == 0, work.c.claimed_by.is_(None), work.c.due_at > now
        return await self._set(and_(work.c.kind == kind, *waits), due_at=now)

    async def listed(self, *, failed: bool = False) -> list[ListedJob]:
        """Return the jobs, oldest first; with `failed` only those that used up `MAX_ATTEMPTS`."""
        query = LISTED.order_by(work.c.seq)
        query = query.where(work.c.attempts >= MAX_ATTEMPTS) if failed else query
        return [ListedJob(*row) for row in await self._database.rows(query)]

    async def named(self, id: str) -> ListedJob:
        """Return the job with this id, or with this prefix of eight or more characters. Raises NotFound."""
        query = LISTED.where(begins(work.c.id, id))
        found = [ListedJob(*row) for row in await self._database.rows(query)]
        if len(found) != 1:
            raise NotFound(f"no job {id!r}; `hachi jobs list` shows the ids")
        return found[0]

    async def retry(self, ids: Collection[str], now: datetime) -> int:
        """Make these jobs due now, except running ones, and reset failures and crashes. Returns how many."""
        idle = and_(work.c.id.in_(ids), work.c.claimed_by.is_(None))
        return await self._set(idle, attempts=0, crashes=0, due_at=now)

    async def counts(self) -> tuple[int, int]:
        """Count the jobs that are due, claimed or waiting for another attempt, and those that used up
        `MAX_ATTEMPTS`."""
        again = work.c.attempts + work.c.crashes > 0
        late = or_(work.c.due_at <= self._clock(), work.c.claimed_by.is_not(None), again)
        query = select(
            func.count().filter(work.c.attempts < MAX_ATTEMPTS, late),
            func.count().filter(work.c.attempts >= MAX_ATTEMPTS),
        ).select_from(work)
        [[waiting, given_up]] = await self._database.rows(query)
        return waiting, given_up


def _taken_over(job: Job) -> StaleClaim:
    return StaleClaim(f"work {job.id} ({job.kind}) was taken over while it ran")


def _new_claim(process: str) -> str:
    return f"{process}#{new_id()[:8]}"


def _held(job: Job) -> ColumnElement[bool]:
    """Match the job while its claim is the caller's."""
    return and_(work.c.id == job.id, work.c.claimed_by == job.claim)
