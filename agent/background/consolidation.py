"""Consolidation: after a turn, update the conversation's summary and the speaker's profile, facts and tasks.

A job reads one slice of the conversation (`slice.py`) and extracts the changes with one model call
(`extraction.py`). It writes them in one transaction, together with the point that the summary has reached
and, where messages are left, the job that goes on there. So the number of calls depends on what was said, and
not on what a model answers. A separate job stores facts and tasks. A crash repeats a job, but none is applied
twice. Without a model, the summary consists of quotations, and only statements in a fixed form are extracted
(`plain.py`).
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.background.extraction import InvalidExtraction, extract_memory_updates
from agent.background.plain import plain_summary, plain_updates
from agent.background.slice import ConversationSlice, SliceReader
from agent.background.updates import (
    ExtractionResult,
    context_entries,
    memory_summary,
    read_fact,
    replaced_facts,
    updates_payload,
)
from agent.background.upkeep_budget import UpkeepBudget
from agent.errors import ModelUnavailable
from agent.models.choose import ChosenModel
from agent.settings import Budget
from agent.turn.budget import lines_that_fit
from agent.turn.jobs import APPLY_UPDATES
from memory.audience import Audience, Place, user_key
from memory.errors import NotFound
from memory.facts.candidate import Provenance
from memory.facts.derived.sources import (
    MEMORY_SUMMARY,
    entry_id,
    memory_summary_id,
    no_longer,
    still_hold,
)
from memory.facts.rulings import Ruling
from memory.facts.writer import FactWriter
from memory.people.memory_updates import MemoryUpdates, NewPreference
from memory.people.profile_store import ProfileStore
from memory.people.tasks import Due, Tasks
from memory.process.spans import note, span
from memory.records import Decision
from memory.sql.engine import Database
from memory.sql.jobs import Job, JobQueue
from memory.sql.memories import MemoryStore
from memory.sql.message_rows import missing
from memory.sql.rests_on import let_go, record
from memory.sql.summaries import ConversationSummaries

log = logging.getLogger("hachi.upkeep")

LAST_ATTEMPT = 4
"""From this attempt on, a model that does not answer is skipped and only the summary is updated, by plain
rules."""


class Overtaken(Exception):
    """What a slice was read from has changed, so nothing of it was written."""


@dataclass(frozen=True)
class Consolidation:
    database: Database
    slices: SliceReader
    summaries: ConversationSummaries
    profiles: ProfileStore
    store: MemoryStore
    tasks: Tasks
    queue: JobQueue
    writer: FactWriter
    clock: Callable[[], datetime]
    model: ChosenModel | None
    """None selects plain rules."""
    calls: UpkeepBudget
    budget: Budget
    """The limit of a conversation's summary."""
    explain: Callable[[Exception], Exception | None]
    """Maps an exception of the model's library to a ModelError, if one fits."""
    count: Callable[[str, Mapping[str, int]], None]
    """Adds to the figures of a person."""

    async def check(self, job: Job) -> None:
        """Raise NotNow if the job has to wait: the model is left alone, or no calls are left."""
        if self.model is None:
            return
        if job.attempts < LAST_ATTEMPT:
            self.model.breaker.check()
        await self.calls.check(job)

    async def consolidate(self, job: Job) -> list[Decision]:
        """Handle a LOOK_BACK job: consolidate one slice, with at most two model calls, whatever the model
        answers. The write of the slice deletes the conversation's jobs, and adds one for what is left.
        Returns the decisions about facts of the job's user. Raises ModelError if the model cannot be reached,
        Overtaken if what was read from has changed twice, and BudgetSpent if no calls are left."""
        try:
            return await self._consolidate(job)
        except Overtaken:
            return await self._consolidate(job)

    async def _consolidate(self, job: Job) -> list[Decision]:
        place = Place(tuple(job.payload["place"]))
        part = await self.slices.next(job.payload["conversation"], job.user_id, place)
        if part is None:
            async with self.database.write() as connection:
                await self.queue.finish(connection, job)
            return []
        decided = await self.extract_and_save(part, job)
        return decided if part.user == job.user_id else []

    async def extract_and_save(self, part: ConversationSlice, job: Job) -> list[Decision]:
        """Extract the changes from a slice, write them, and store its facts and tasks. Deletes the jobs of
        its conversation. Raises Overtaken if the messages were erased or another worker consolidated them
        first."""
        with span("exchange", messages=[message.id for message in part.messages]):  # the stored name
            found = await self._extract(part, last_attempt=job.attempts >= LAST_ATTEMPT)
            note(findings=found)
        updates = await self.apply_memory_updates_to_user_context(part, found, job)
        if updates is None:
            return []
        decisions = await self.store_updates(updates)
        await self.queue.done(updates.id)
        return decisions

    async def apply_memory_updates_to_user_context(
        self, part: ConversationSlice, found: ExtractionResult, job: Job
    ) -> Job | None:
        """Write the summary and the profile, and add the job that stores facts and tasks, in one transaction,
        which Overtaken undoes. Returns the new job, already claimed, if there are facts or tasks."""
        entries, payload = context_entries(part, found), updates_payload(part, found)
        entries += memory_summary(part, found)
        async with self.database.write(lock={part.owner, user_key(part.user)}) as connection:
            if not await self._still_holds(connection, part):
                raise Overtaken("what it was read from has changed")
            if not await self.update_active_summary(connection, part, found):
                raise Overtaken("another summary was written meanwhile")
            if entries:
                await self.profiles.merge_in(connection, part.user, part.place, entries, part.now)
            for entry in entries:
                if entry.message_id is None and entry.value and entry.field != MEMORY_SUMMARY:
                    id = entry_id(part.user, part.place.stored, entry.field, entry.item)
                    said = {message.id for message in part.said}
                    await let_go(connection, [id])
                    await record(connection, id, said, "stated")
            await self.queue.finish(connection, job)
            if part.upto > part.after and await self.slices.are_left(connection, part):
                now = self.clock()
                await self.queue.add(connection, job.kind, job.user_id, job.payload, now, about=job.about)
            if not payload:
                return None
            id = await self.queue.add(connection, APPLY_UPDATES, part.user, payload, part.now, ours=True)
        return Job(id, APPLY_UPDATES, part.user, payload, attempts=1)

    async def _still_holds(self, connection: AsyncConnection, part: ConversationSlice) -> bool:
        """Whether everything that the slice holds may still be repeated."""
        said, earlier = ([message.id for message in read] for read in (part.messages, part.earlier))
        audience = Audience(Audience.of(part.user, part.place).keys | {user_key(part.user)})
        return (
            not await missing(connection, [*said, *earlier], part.owner)
            and not await missing(connection, part.profile_messages)
            and await no_longer(connection, [*said, *earlier], part.owner, self.clock()) == part.no_longer
            and await still_hold(connection, part.facts, audience, self.clock())
        )

    async def update_active_summary(
        self, connection: AsyncConnection, part: ConversationSlice, found: ExtractionResult
    ) -> bool:
        """Store the summary and what it rests on. Returns False if another worker updated it first, or if it
        has been withheld."""
        rebuilt = not part.summary
        if part.upto == part.after and not rebuilt:
            await self._record_memory_summary(connection, part, found)
            return True
        id = await self.summaries.update_in(
            connection,
            part.conversation_id,
            part.owner,
            found.summary or part.summary,
            after=part.after,
            revision=part.revision,
            covered=part.upto,
            now=part.now,
            rebuilt=rebuilt,
        )
        if id is None:
            return False
        if sources := (part.facts - replaced_facts(part, found)) | part.profile_messages:
            await let_go(connection, [id] if rebuilt else [])
            await record(connection, id, sources, "covered")
        await self._record_memory_summary(connection, part, found, id)
        return True

    async def _record_memory_summary(
        self, connection: AsyncConnection, part: ConversationSlice, found: ExtractionResult, *summary: str
    ) -> None:
        """Note what a new summary of the person's facts rests on: all that the model was given."""
        if found.memory_summary:
            heard = {message.id for message in (*part.messages, *part.earlier)}
            sources = part.facts | part.profile_messages | heard | set(summary)
            text = memory_summary_id(part.user, part.place)
            await let_go(connection, [text])
            await record(connection, text, sources, "covered")

    async def store_updates(self, job: Job) -> list[Decision]:
        """Handle an APPLY_UPDATES job. Running it twice is safe."""
        payload, place = job.payload, Place(tuple(job.payload["place"]))
        decisions: list[Decision] = []
        for fact in payload["facts"]:
            decisions += await self.store_fact_memory(fact, payload["said"], job.user_id, place)
        decisions += await self._apply_rulings(payload.get("rulings", ()), job.user_id, place)
        for task in payload["tasks"]:
            try:
                await self.tasks.update(
                    job.user_id,
                    task["description"],
                    task["status"],
                    id=task["id"],
                    due=_due(task.get("due")),
                    place=place,
                    now=self.clock(),
                    found_at=datetime.fromisoformat(payload["found_at"]),
                    heard=payload.get("heard"),
                )
            except NotFound as error:
                log.warning("work %s names no task: %s", job.id, type(error).__name__)
        return decisions

    async def store_fact_memory(
        self, fact: dict[str, Any], said: dict[str, str], user: str, place: Place
    ) -> list[Decision]:
        """Store one fact by the usual rules and the model's rulings."""
        if "kept" in fact:  # a ruling, as an earlier version stored it
            return []
        draft, provenance = read_fact(fact, said, user, place)
        return await self.writer.remember([draft], provenance, fact.get("ruled", {}))

    async def _apply_rulings(
        self, rulings: Iterable[tuple[str, str, Ruling]], user: str, place: Place
    ) -> list[Decision]:
        """Apply what the model ruled on stored facts. One that was deleted or replaced since is skipped."""
        origin = Provenance(user, self.clock(), place)
        decided = [await self.writer.rule(new, old, ruling, origin) for new, old, ruling in rulings]
        return [decision for decision in decided if decision]

    async def _extract(self, part: ConversationSlice, *, last_attempt: bool) -> ExtractionResult:
        """Extract with the model, or with plain rules if no model is set or only the companion spoke. If the
        model's answer is unusable, or the last attempt fails, only the summary is updated."""
        if self.model is None or (part.messages and not part.said):
            return self._plain(part, _plain_preferences(part))
        await self.calls.spend(part.owner)
        try:
            found = await extract_memory_updates(self.model, part, self.budget)
        except InvalidExtraction as error:
            note(well_formed=False)
            self._note_extraction(part, ok=False, error=str(error))
            return self._plain(part, MemoryUpdates())
        except Exception as error:
            self._note_extraction(part, ok=False, error=f"{type(error).__name__}: {error}"[:200])
            fault = self.explain(error)
            if fault is None:
                raise
            if isinstance(fault, ModelUnavailable) and last_attempt:
                return self._plain(part, MemoryUpdates())
            raise fault from error
        updates = found.updates
        self._note_extraction(
            part,
            ok=True,
            facts=len(updates.new_facts),
            preferences=len(updates.new_preferences),
            tasks=len(updates.task_updates),
            left_out=[fault.partition(":")[0] for fault in found.faults],
        )
        return found

    def _note_extraction(self, part: ConversationSlice, *, ok: bool, **details: Any) -> None:
        """Count an extraction, and log it as one structured line."""
        self.count(part.user, {"extractions": 1, "applied": int(ok)})
        line = {"event": "memory_extraction", "user_id": part.user, "ok": ok} | details
        log.log(logging.INFO if ok else logging.WARNING, json.dumps(line, ensure_ascii=False))

    def _plain(self, part: ConversationSlice, updates: MemoryUpdates) -> ExtractionResult:
        told = plain_summary(part.summary, [*part.earlier, *part.messages])
        return ExtractionResult(lines_that_fit(told, self.budget), updates)


def _plain_preferences(part: ConversationSlice) -> MemoryUpdates:
    found = [pair for message in part.said for pair in plain_updates(message.text)]
    return MemoryUpdates(new_preferences=tuple(NewPreference(key=key, value=value) for key, value in found))


def _due(written: str | None) -> Due:
    return "never" if written == "never" else datetime.fromisoformat(written) if written else None
