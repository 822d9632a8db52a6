"""The jobs that run beside the conversation: stateless looks at SQL rows, so replicas may all run them."""

import logging
from collections.abc import AsyncIterator
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

    async def purge() -> None:
        try:
            gone = [*await pet.purge(), *await pet.tidy()]
        except FAULTS as error:
            log.warning("the purge waits: %s", error)
        else:
            if gone:
                log.info("purged %d memories", len(gone))

    async def queue() -> None:
        try:
            house = await pet.house()
        except FAULTS as error:
            log.warning("the queue waits: %s", error)
        else:
            house.aftercare.wake()

    async def optimise() -> None:
        try:
            await pet.index.optimise()
        except FAULTS as error:
            log.warning("the index is not tidied: %s", error)

    async def prune() -> None:
        try:
            gone = await pet.prune_traces()
        except FAULTS as error:
            log.warning("old traces wait to be pruned: %s", error)
        else:
            if gone:
                log.info("pruned %d traces", gone)

    async def remind() -> None:
        try:
            await pet.reminders.run()
        except FAULTS as error:
            log.warning("reminders wait: %s", error)

    scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1})
    scheduler.add_job(purge, "interval", minutes=pet.settings.purge_minutes, id="purge")
    scheduler.add_job(queue, "interval", seconds=QUEUE_SECONDS, id="queue")
    scheduler.add_job(prune, "interval", seconds=PRUNE_SECONDS, id="prune")
    scheduler.add_job(remind, "interval", seconds=REMIND_SECONDS, id="remind")
    scheduler.add_job(optimise, "interval", seconds=OPTIMISE_SECONDS, id="optimise")
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)
