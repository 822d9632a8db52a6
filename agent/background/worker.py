"""Run the durable jobs that turns add: step 5 of a turn.

Each kind of job has a handler that is safe to run twice. After a crash the job is still in the queue; the
next start, or another replica, runs it. Several jobs run concurrently, since a consolidation waits for a
model, but jobs of the same person run one after the other.
"""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from agent.background.consolidation.consolidate import Consolidation
from agent.turn.store_memories_job import STORE_MEMORIES, read_store_memories
from memory.errors import MemoryFault
from memory.facts.decision_log import decision_run
from memory.process.breaker import calls_for, retry_at
from memory.process.spans import unrecorded
from memory.records import Decision
from memory.sql.jobs.job import SUSPECT, Job, StaleClaim
from memory.sql.messages.summaries import CONSOLIDATE

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.worker")

GRACE = 3.0
"""Seconds that running jobs get to finish when the companion closes."""
MAX_RUNNING = 8
"""How many consolidations run at once, and how many other jobs besides."""
LOOK_AHEAD = 2 * MAX_RUNNING
"""The most queued jobs that this process claims at a time."""

TRACED = frozenset({STORE_MEMORIES, CONSOLIDATE})
"""Jobs that belong to a turn and are shown in its trace."""

Started = asyncio.Task[list[Decision]]


@dataclass(eq=False)
class Worker:
    parts: "Components"
    consolidation: Consolidation

    def __post_init__(self) -> None:
        self._loop: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._polls = False
        self._stopped = False
        self._last: dict[tuple[str, bool], Started] = {}
        """By person: the last running consolidation (True), and the last other running job (False)."""
        self._claimed: dict[Started, Job] = {}
        """The running jobs that were claimed in the queue."""
        self._slots = {slow: asyncio.Semaphore(MAX_RUNNING) for slow in (False, True)}
        """Consolidations and other jobs have separate slots: waiting for a model delays no other job."""

    def wake(self, *, poll: bool = False) -> None:
        """Run due jobs in the background. With `poll`, take over jobs of ended processes and update the
        index."""
        if self._stopped:
            return
        self._polls = self._polls or poll
        self._woken.set()
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._run(), name="hachi worker")

    def run_claimed(self, job: Job) -> Awaitable[list[Decision]]:
        """Run a job that this process added and claimed, after the person's other jobs. Returns the
        decisions. If the job fails, it returns none and does not raise, because the reply is already
        stored."""
        return asyncio.shield(self._start(job))

    def after_turn(self, job: Job | None, consolidated_at: datetime | None) -> None:
        """Update the index, run the turn's job, and consolidate its conversation if that is due now. The
        schedule runs jobs that are due later."""
        self.parts.sync.wake()
        if job:
            self.run_claimed(job)
        if consolidated_at and consolidated_at <= self.parts.clock():
            self.wake()

    def _start(self, job: Job) -> Started:
        slow = job.kind == CONSOLIDATE
        before = {self._last.get((job.user_id, kind)) for kind in {False, slow}} - {None}
        task = asyncio.create_task(self._after(before, job), name="hachi job")
        self._last[job.user_id, slow] = task
        task.add_done_callback(partial(self._ended, (job.user_id, slow)))
        return task

    async def _after(self, before: set[Started | None], job: Job) -> list[Decision]:
        """Run a job once these others have ended."""
        try:
            async with self.parts.queue.working_on(job):
                if before:
                    await asyncio.wait(filter(None, before))
                async with self._slots[job.kind == CONSOLIDATE]:
                    if self._stopped:
                        await self.parts.queue.postpone(job, self.parts.clock())
                        return []
                    with calls_for(job.user_id):
                        return await self._work(job)
        except StaleClaim as error:
            log.warning("%s; nothing more of it is written", error)
            return []
        except MemoryFault as error:
            log.warning("background work is postponed: %s", error)
            return []

    def _ended(self, key: tuple[str, bool], task: Started) -> None:
        if self._last.get(key) is task:
            del self._last[key]
        self.parts.sync.wake()
        if not task.cancelled() and any(decision.target_id for decision in task.result()):
            self.wake()  # a superseded fact withholds the summaries that used it

    async def settle(self, *, hurry: bool = True) -> None:
        """Wait until all due jobs have run; with `hurry` also the consolidations that wait for their
        conversations to go quiet. Failed jobs stay in the queue until their retry."""
        await asyncio.gather(*self._last.values(), return_exceptions=True)
        try:
            if hurry:
                await self.parts.queue.hasten(CONSOLIDATE, self.parts.clock())
            self.wake(poll=True)
            while self._loop is not None and not self._loop.done():
                await asyncio.shield(self._loop)
        except MemoryFault as error:
            log.warning("background work is postponed: %s", error)

    async def stop(self) -> None:
        """Finish the running jobs and start no more. Jobs that take longer than `GRACE` are cancelled and
        stay in the queue."""
        self._stopped = True
        self._woken.set()
        running = [*self._last.values(), *self._claimed, *([self._loop] if self._loop else [])]
        if running:
            await asyncio.wait(running, timeout=GRACE)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self) -> None:
        """Run jobs until nobody wakes the worker any more. Between the last check and the end of the task
        nothing awaits, so `wake` sees either a running loop or a finished one."""
        while self._woken.is_set():
            self._woken.clear()
            try:
                await self._run_due_jobs()
            except MemoryFault as error:
                log.warning("background work is postponed: %s", error)
            except Exception:
                log.exception("background work failed; the next turn, or the schedule, starts it again")

    async def _run_due_jobs(self) -> None:
        polls, self._polls = self._polls, False
        if polls:
            await self.parts.queue.take_up(self.parts.clock())
        try:
            while not self._stopped:
                self._woken.clear()
                await self._claim_jobs()
                if not self._claimed:
                    break
                await self._wait()
        finally:  # gather passes a cancellation on to the jobs, which then stay in the queue
            await asyncio.gather(*self._claimed, return_exceptions=True)
        if polls:
            await self.parts.sync.try_to_catch_up()
            await self.parts.recall.note_uses()

    async def _claim_jobs(self) -> None:
        """Claim and start due jobs.

        A person's consolidations run after the person's other jobs, so that they see the facts those jobs
        stored. Jobs that may have crashed a process run one at a time.
        """
        suspect = any(job.crashes >= SUSPECT for job in self._claimed.values())
        room = LOOK_AHEAD - len(self._claimed)
        now, queue = self.parts.clock(), self.parts.queue
        claimed = await queue.claim_due(now, room, last=CONSOLIDATE, suspects=not suspect)
        self._claimed |= {self._start(job): job for job in claimed}

    async def _wait(self) -> None:
        """Wait until a job ends or the worker is woken."""
        woken = asyncio.create_task(self._woken.wait())
        try:
            await asyncio.wait([*self._claimed, woken], return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        for task in [task for task in self._claimed if task.done()]:
            del self._claimed[task]
            task.result()

    async def _work(self, job: Job) -> list[Decision]:
        try:
            if job.kind == CONSOLIDATE:
                await self.consolidation.check(job)
            with (
                self.parts.recorder.work(job) if job.kind in TRACED else unrecorded(),
                decision_run(self.parts.writer.logged),
            ):
                if job.kind == CONSOLIDATE:  # its last transaction deletes the job
                    return await self.consolidation.consolidate(job)
                if job.kind != STORE_MEMORIES:
                    raise ValueError(f"no handler for work of the kind {job.kind!r}")
                async with self.parts.database.read() as connection:
                    arguments = await read_store_memories(job, connection, self.parts.clock())
                decisions = await self.parts.writer.remember(*arguments) if arguments else []
        except StaleClaim:
            raise
        except Exception as error:
            if until := retry_at(error):  # the job was not attempted
                await self.parts.queue.postpone(job, until, str(error))
                return []
            log.warning("work %s (%s) failed, attempt %d: %s", job.id, job.kind, job.attempts, error)
            await self.parts.queue.failed(job, f"{type(error).__name__}: {error}", self.parts.clock())
            return []
        await self.parts.queue.done(job)
        return decisions
