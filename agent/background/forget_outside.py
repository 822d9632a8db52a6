"""Forgetting outside of the database of memories: traces, and lines in files."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.tracing.recorder import Recorder
from agent.tracing.store import removal
from agent.tracing.store.traces import Traces
from memory.erasure.forgotten_data import ForgottenData
from memory.errors import MemoryFault
from memory.sql.jobs import Job, JobQueue

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
        """Run the job that a forgetting has claimed. Returns how many traces lost their content. If the
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
        """Blank the lines of the log, the decisions and the prompt history, and empty the traces, that show
        the forgotten data. Returns how many traces. Running it twice is safe."""
        data = ForgottenData.from_json(job.user_id, job.payload)
        texts = (*data.contents, *data.texts)
        await asyncio.to_thread(blank_lines_of, self.home, None, texts, data.ids, data)
        await asyncio.to_thread(blank_typed, self.home, data.texts)
        await self.recorder.forget_data(data.may_be_shown_by)
        since = datetime.fromisoformat(job.payload["since"]) - SLACK
        owners, gone = job.payload["owners"], job.payload.get("gone", ())
        return await removal.forget(self.traces.database, data, job.user_id, owners, gone, since)
