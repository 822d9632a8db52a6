"""Periodic jobs. They only read and write database rows, so several replicas can run all of them.

The last run of hourly and daily jobs is stored: an overdue job runs soon after a start, in one process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agent.background.check_ins import CheckInService
from agent.background.confirmed_calls import ConfirmedCalls
from agent.background.reminders import Reminders
from agent.errors import HachiError
from agent.services.admin import AdminService
from memory.sql.jobs.last_runs import LastRuns

if TYPE_CHECKING:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    from agent.wiring.components import Components

log = logging.getLogger("hachi.schedule")

LATE = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
"""Options of the scheduler: a late job still runs, for example one that was due while libraries loaded."""
QUEUE_SECONDS = 10
"""Seconds between looks at the queue, for retries and jobs of other processes."""
REMIND_SECONDS = 20
"""Seconds between checks for due tasks, if a surface can announce them."""
PURGE_SECONDS = 15 * 60.0
"""Seconds between deletions of expired memories."""
OVERDUE_SECONDS = 2.0
"""Seconds after a start before overdue jobs run; by then the first prompt is shown."""
MINUTE, HOUR, DAY = 60, 3600, 24 * 3600
STOP_SECONDS = 1.0
"""Seconds that running jobs get when the companion closes."""


@dataclass(frozen=True)
class Schedule:
    parts: "Components"
    maintenance: AdminService
    reminders: Reminders
    check_ins: CheckInService
    calls: ConfirmedCalls
    wake_worker: Callable[[], Awaitable[None]]
    _running: dict[str, asyncio.Task[str]] = field(default_factory=dict)

    def start(self, closing: AsyncExitStack) -> None:
        """Run the jobs until `closing` ends."""
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        scheduler = AsyncIOScheduler(timezone="UTC", job_defaults=LATE)
        admin = self.maintenance
        for name, seconds, act, failure in (
            ("purge", PURGE_SECONDS, self._purge, "the purge failed"),
            ("forgotten", MINUTE, admin.purge_forgotten, "what was forgotten was not deleted"),
            ("queue", QUEUE_SECONDS, self.wake_worker, "the queue could not be checked"),
            ("prune", MINUTE, self._due("prune", HOUR, self._prune), "old traces were not deleted"),
            ("room", MINUTE, self._due("room", HOUR, admin.give_back), "free pages were not given back"),
            ("log", MINUTE, self._due("log", DAY, admin.cut_log), "the log of changes was not shortened"),
            ("remind", REMIND_SECONDS, self.reminders.run, "reminders were not sent"),
            ("check in", MINUTE, self.check_ins.run, "nobody was asked how things went"),
            ("calls", MINUTE, self.calls.drop_late, "what nobody agreed to was not dropped"),
            ("erase", 5 * MINUTE, self._erase, "an interrupted erasure could not go on"),
            ("figures", MINUTE, self.parts.figures.flush, "the figures were not stored"),
        ):
            scheduler.add_job(
                self._start, "interval", (name, act, failure), seconds=seconds, id=name, name=name
            )
        soon = datetime.now(UTC)
        for name in ("purge", "erase"):  # these may be overdue from before the start
            scheduler.modify_job(name, next_run_time=soon)
        for name in ("prune", "log", "room"):
            scheduler.modify_job(name, next_run_time=soon + timedelta(seconds=OVERDUE_SECONDS))
        scheduler.start()
        closing.push_async_callback(self._stop, scheduler)

    async def _stop(self, scheduler: "AsyncIOScheduler") -> None:
        scheduler.pause()
        await asyncio.sleep(0)  # a start that is due now runs first: shutdown would log it as an error
        scheduler.shutdown(wait=False)
        await self._finish()

    def _due(
        self, name: str, seconds: float, act: Callable[[], Awaitable[object]]
    ) -> Callable[[], Awaitable[None]]:
        """Wrap a job so that it runs in one of all processes, if its last run was at least `seconds` ago."""

        async def run() -> None:
            runs = LastRuns(self.parts.database, self.parts.clock)
            async with runs.claimed(name, timedelta(seconds=seconds)) as due:
                if due:
                    await act()

        return run

    async def _start(self, name: str, act: Callable[[], Awaitable[object]], failure: str) -> None:
        """Start a job, unless it is running. The scheduler does not wait for it and logs no overlap."""
        last = self._running.get(name)
        if last is None or last.done():
            last_error = last.result() if last else ""
            self._running[name] = asyncio.create_task(_run(act, failure, last_error), name=f"hachi {name}")

    async def _finish(self) -> None:
        """Wait for running jobs, since cancelling may leave a connection in use. Cancel slow ones."""
        if tasks := list(self._running.values()):
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _purge(self) -> None:
        if gone := [*await self.maintenance.purge(), *await self.maintenance.tidy()]:
            log.info("purged %d memories", len(gone))

    async def _erase(self) -> None:
        for receipt in await self.parts.erasure.resume():
            log.info("an interrupted erasure went on: %s", "verified" if receipt.verified else "not verified")

    async def _prune(self) -> None:
        if gone := await self.maintenance.prune_traces():
            log.info("pruned %d traces", gone)


async def _run(act: Callable[[], Awaitable[object]], failure: str, last_error: str) -> str:
    """Run a job, and return its error. The error is logged, unless the last run had the same one. The job
    runs again next time."""
    try:
        await act()
    except HachiError as error:
        if str(error) != last_error:
            log.warning("%s and will be tried again: %s", failure, error)
        return str(error)
    except Exception:
        log.exception("%s and will be tried again", failure)
    return ""
