"""The jobs that run beside the conversation: stateless looks at SQL rows, so replicas may all run them."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent.errors import FAULTS

if TYPE_CHECKING:
    from agent.companion import Companion

log = logging.getLogger("hachi.schedule")

QUEUE_SECONDS = 10
"""How often the queue is looked at for work that is due again, or that another process left behind."""

REMIND_SECONDS = 20
"""How often tasks that have fallen due are looked for, where a surface can announce them."""

PRUNE_SECONDS = 3600
"""How often old traces are taken away."""

OPTIMISE_SECONDS = 24 * 3600
"""How often the index is tidied, which also takes removed points out of its files. It stops everything else
for some 0.15 s at 20,000 points."""


@asynccontextmanager
async def running(pet: "Companion") -> AsyncIterator[None]:
    """The scheduler, for as long as the block lasts."""
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1})
    for name, (seconds, act, where_it_fails) in _jobs(pet).items():
        scheduler.add_job(_tried(act, where_it_fails), "interval", seconds=seconds, id=name)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)


Job = Callable[[], Awaitable[None]]


def _jobs(pet: "Companion") -> dict[str, tuple[float, Job, str]]:
    """By name: every how many seconds, what is done, and what the log says where it fails."""

    async def purge() -> None:
        if gone := [*await pet.purge(), *await pet.tidy()]:
            log.info("purged %d memories", len(gone))

    async def queue() -> None:
        (await pet.house()).aftercare.wake()

    async def prune() -> None:
        if gone := await pet.prune_traces():
            log.info("pruned %d traces", gone)

    async def remind() -> None:
        await pet.reminders.run()

    async def optimise() -> None:
        await pet.index.optimise()

    return {
        "purge": (60 * pet.settings.purge_minutes, purge, "the purge waits"),
        "queue": (QUEUE_SECONDS, queue, "the queue waits"),
        "prune": (PRUNE_SECONDS, prune, "old traces wait to be pruned"),
        "remind": (REMIND_SECONDS, remind, "reminders wait"),
        "optimise": (OPTIMISE_SECONDS, optimise, "the index is not tidied"),
    }


def _tried(act: Job, where_it_fails: str) -> Job:
    async def run() -> None:
        try:
            await act()
        except FAULTS as error:
            log.warning("%s: %s", where_it_fails, error)

    return run
