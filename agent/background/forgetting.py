"""Forgetting outside of the tables of memories: traces, lines in files, and the payloads of waiting jobs."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.services.erasure.lines import blank_lines_of, blank_typed
from agent.tracing.recorder import Recorder
from agent.tracing.store import removal
from agent.tracing.store.traces import Traces
from agent.turn.jobs import APPLY_UPDATES, STORE_MEMORIES
from memory.erasure.repetition import FactWords, ForgottenData
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
        data = ForgottenData.from_json(job.payload)
        await asyncio.to_thread(blank_lines_of, self.home, None, (*data.contents, *data.texts), data.ids)
        await asyncio.to_thread(blank_typed, self.home, data.texts)
        await self.recorder.forget_data(data.may_be_shown_by)
        since = datetime.fromisoformat(job.payload["since"]) - SLACK
        return await removal.forget(self.traces.database, data, job.user_id, job.payload["owners"], since)


def without_forgotten(kind: str, payload: dict[str, Any], data: ForgottenData) -> dict[str, Any] | None:
    """Return the payload of a waiting job without the forgotten data; None if nothing is left to do."""
    facts = data.facts

    def states(content: str) -> bool:
        return any(fact.same_as(FactWords.of(content, data.teller)) for fact in facts)

    if kind == STORE_MEMORIES:
        if payload["message_id"] in data.ids:
            return None
        return payload | {
            "drafts": [draft for draft in payload["drafts"] if not states(draft["content"])],
            "recalled": [
                hit
                for hit in payload["recalled"]
                if hit["id"] not in data.ids and not data.shown_by(hit["content"])
            ],
        }
    if kind == APPLY_UPDATES:
        kept = [
            fact
            for fact in payload["facts"]
            if data.ids.isdisjoint((fact["message_id"], fact.get("kept"), fact["draft"]["replaces"]))
            and not states(fact["draft"]["content"])
        ]
        said = {id: text for id, text in payload["said"].items() if id not in data.ids}
        left = kept or payload["tasks"] or payload.get("rulings")
        return payload | {"facts": kept, "said": said} if left else None
    return payload
