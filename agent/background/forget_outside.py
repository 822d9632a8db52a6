"""Forgetting outside of the database of memories: traces, and lines in files."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.tracing.recorder import Recorder
from agent.tracing.store import removal
from agent.tracing.store.traces import Traces
from memory.erasure.forgotten_data import ForgottenData
from memory.errors import MemoryFault
from memory.sql.jobs import FORGET_OUTSIDE, Job, JobQueue

log = logging.getLogger("hachi.worker")

SLACK = timedelta(hours=1)
"""How much earlier than the first message a trace that shows it may have begun."""


@dataclass(frozen=True)
class ForgettingOutside:
    home: Path
    traces: Traces
    recorder: Recorder
    queue: JobQueue
    clock: Callable[[], datetime]

    async def run(self, id: str) -> int:
        """Run the job that a forgetting has claimed. Returns how many traces it withheld or emptied. If the
        database of traces cannot be reached, the worker runs the job again."""
        job = await self.queue.take(id)
        if job is None:
            return 0
        try:
            async with self.queue.working_on(job):
                emptied = await self.handle(job)
        except MemoryFault as error:
            log.warning("traces are forgotten later: %s", error)
            await self.queue.failed(job, str(error), self.clock())
            return 0
        await self.queue.done(id)
        return emptied

    async def handle(self, job: Job) -> int:
        """Blank the lines of the log, the decisions and the prompt history that show the forgotten data, and
        withhold the traces that do, or empty them once it can no longer be undone. Returns how many traces. A
        job without data follows an undo, and one with `places` takes from their traces alone what was made
        private. Running it twice is safe."""
        if not job.payload:
            await self.bring_back()
            return 0
        sought = _sought(job)
        data, database = sought.data, self.traces.database
        if sought.user:
            await asyncio.to_thread(blank_lines_of, self.home, None, data.ids, data)
            await asyncio.to_thread(blank_typed, self.home, data.texts)
        await self.recorder.forget_data(data.shown_by)
        until = job.payload.get("until")  # an older version wrote none
        if until and self.clock() < datetime.fromisoformat(until):
            return await removal.withhold(database, sought)
        return await removal.forget(database, sought)

    async def bring_back(self) -> None:
        """Show the traces again that show nothing which is still forgotten."""
        waiting = [_sought(job) for job in await self.queue.of_kind(FORGET_OUTSIDE) if job.payload]
        await removal.release(self.traces.database, waiting)

    async def finish(self, user: str, places: Collection[str]) -> None:
        """End the forgettings of a person who is erased, and those of others in their places, whose texts may
        name them: none of it comes back."""
        now = {"until": self.clock().isoformat()}
        for job in await self.queue.of_kind(FORGET_OUTSIDE):
            if job.payload and (job.user_id == user or not set(places).isdisjoint(_sought(job).owners)):
                await self.handle(replace(job, payload=job.payload | now))
                await self.queue.done(job.id)


def _sought(job: Job) -> removal.Sought:
    payload = job.payload
    return removal.Sought(
        ForgottenData.from_json(job.user_id, payload),
        "" if "places" in payload else job.user_id,
        payload.get("places") or payload["owners"],
        payload.get("gone", ()),
        datetime.fromisoformat(payload["since"]) - SLACK,
    )
