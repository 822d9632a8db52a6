"""When the jobs that serve a whole database last ran."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from hachi.testing import FixedClock
from memory.sql.engine import Database
from memory.sql.jobs.last_runs import CLAIM, LastRuns

DAY = timedelta(days=1)


async def ran(runs: LastRuns, name: str = "cut") -> bool:
    async with runs.claimed(name, DAY) as due:
        await asyncio.sleep(0)  # others come meanwhile
        return due


async def test_a_job_is_due_at_first_and_an_interval_after_its_last_run_in_one_process_at_a_time(
    database: Database, open_again: Callable[[], Awaitable[Database]], clock: FixedClock
) -> None:
    one, other = LastRuns(database, clock), LastRuns(await open_again(), clock)
    for advance, due in ((0, 1), (23.9, 0), (0.2, 1), (0.1, 0), (-48, 1)):
        clock.advance(hours=advance)
        found = await asyncio.gather(*(ran(runs) for runs in (one, other, one, other)))
        assert sum(found) == due
    assert await ran(one, "prune"), "each job has a time of its own"


async def test_a_run_that_failed_or_did_not_end_is_repeated_soon(
    database: Database, clock: FixedClock
) -> None:
    runs = LastRuns(database, clock)
    with pytest.raises(OSError, match="away"):
        async with runs.claimed("cut", DAY):
            raise OSError("away")
    assert not await ran(runs)
    clock.advance(seconds=CLAIM.total_seconds())
    assert await ran(runs)
