"""Periodic jobs. They only read and write database rows, so several replicas can run all of them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.background.reminders import Reminders
from agent.errors import HachiError
from agent.services.admin import AdminService
from agent.services.erasure import ErasureService
from agent.services.statistics import Figures

log = logging.getLogger("hachi.schedule")

Running = dict[str, asyncio.Task[None]]

JOBS = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
"""A job that comes late, as at the start while libraries load, still runs."""

QUEUE_SECONDS = 10
"""How often the queue is looked at: for retries, jobs of processes that died, and what no notice told of."""

UNDO_SECONDS = 60
"""How often what was forgotten, and can no longer be brought back, is deleted."""

REMIND_SECONDS = 20
"""How often due tasks are checked, if a surface can announce them."""

ERASE_SECONDS = 300
"""How often interrupted erasures are tried again."""

FIGURES_SECONDS = 60
"""How often the figures of this process are added to the database, and its writes are counted."""

STOP_SECONDS = 1.0
"""How long running jobs may take when the companion closes."""

PRUNE_SECONDS = 3600
"""How often old traces are deleted, and the room of deleted rows is given back."""

OPTIMISE_SECONDS = 24 * 3600
"""How often the indexes are compacted, which also removes deleted points from their files, and compared with
the rows. Compacting blocks the process for about 0.15 s at 20,000 points."""


@dataclass(frozen=True)
class Schedule:
    maintenance: AdminService
    reminders: Reminders
    figures: Figures
    erasure: ErasureService
    wake_worker: Callable[[], Awaitable[None]]
    purge_minutes: float

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the jobs for as long as the block lasts."""
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        scheduler = AsyncIOScheduler(timezone="UTC", job_defaults=JOBS)
        running: Running = {}
        keep = self.maintenance
        for name, seconds, act, failure in (
            ("purge", 60 * self.purge_minutes, self._purge, "the purge failed"),
            ("forgotten", UNDO_SECONDS, keep.purge_undo, "what was forgotten was not deleted"),
            ("queue", QUEUE_SECONDS, self.wake_worker, "the queue could not be checked"),
            ("prune", PRUNE_SECONDS, self._prune, "old traces were not deleted"),
            ("room", PRUNE_SECONDS, keep.give_back, "free pages were not given back"),
            ("remind", REMIND_SECONDS, self.reminders.run, "reminders were not sent"),
            ("erase", ERASE_SECONDS, self._erase, "an interrupted erasure could not go on"),
            ("figures", FIGURES_SECONDS, self.figures.flush, "the figures were not stored"),
            ("writes", FIGURES_SECONDS, keep.database.count_writes, "the writes were not counted"),
            ("optimise", OPTIMISE_SECONDS, keep.tend_index, "the index was not compacted"),
        ):
            start = _starting(name, act, failure, running)
            scheduler.add_job(start, "interval", seconds=seconds, id=name, name=name)
        for name in ("purge", "erase"):  # what was left while nothing ran
            scheduler.modify_job(name, next_run_time=datetime.now(UTC))
        scheduler.start()
        try:
            yield
        finally:
            scheduler.pause()
            await asyncio.sleep(
                0
            )  # a start that is due now runs first: shutdown would cancel it and log an error
            scheduler.shutdown(wait=False)
            await _finish(running)

    async def _purge(self) -> None:
        if gone := [*await self.maintenance.purge(), *await self.maintenance.tidy()]:
            log.info("purged %d memories", len(gone))

    async def _erase(self) -> None:
        for receipt in await self.erasure.resume():
            log.info("an interrupted erasure went on: %s", "verified" if receipt.verified else "not verified")

    async def _prune(self) -> None:
        if gone := await self.maintenance.prune_traces():
            log.info("pruned %d traces", gone)


def _starting(
    name: str, act: Callable[[], Awaitable[object]], failure: str, running: Running
) -> Callable[[], Awaitable[None]]:
    """Return what starts a job, unless it is in `running`. It does not wait for the job, so the scheduler
    never finds it running and has nothing to tell. The job's errors are logged, and it runs again next
    time."""

    async def run() -> None:
        try:
            await act()
        except HachiError as error:
            log.warning("%s and will be tried again: %s", failure, error)
        except Exception:
            log.exception("%s and will be tried again", failure)

    async def start() -> None:
        if name not in running or running[name].done():
            running[name] = asyncio.create_task(run(), name=f"hachi {name}")

    return start


async def _finish(running: Running) -> None:
    """Let the running jobs end, since one that is cancelled may hold a connection. Cancel what takes long."""
    if tasks := list(running.values()):
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
