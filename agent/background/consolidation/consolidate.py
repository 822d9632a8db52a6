"""Consolidate a conversation: read the input, ask for the changes, and apply them.

Facts are stored first, each decided like any other. Then one transaction writes the summary, the profiles and
their evidence, and deletes the job. After a crash in between, the job runs again: the model sees the stored
facts, and none is stored twice. If an answer is incomplete, its complete items count, and the model is asked
again about half of the messages. If that fails too, no summary covers them and the job is retried. Without a
model, the summary quotes people.
"""

import json
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.background.consolidation.answer import ConsolidationAnswer
from agent.background.consolidation.apply import AnswerWriter, Overtaken
from agent.background.consolidation.ask import extract_memory_updates, quoted_summary
from agent.background.consolidation.budget import ConsolidationBudget
from agent.background.consolidation.input import ConsolidationInput
from agent.background.consolidation.reader import MOST_MESSAGES, ConsolidationReader
from agent.background.consolidation.rulings import confirmed_rulings
from agent.models.choice.choose import ChosenModel
from agent.models.failures import model_error
from agent.types.budget import SUMMARY_BUDGET
from memory.process.spans import note, note_rows, span
from memory.records import Decision
from memory.sql.jobs.job import Job

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.consolidation")


class UnreadableAnswer(Exception):
    """The model's answers about some messages were incomplete, so no summary covers these."""


@dataclass(frozen=True)
class Consolidation:
    parts: "Components"
    reader: ConsolidationReader
    model: ChosenModel | None
    """None: the summary quotes people."""
    calls: ConsolidationBudget
    writer: AnswerWriter

    async def check(self, job: Job) -> None:
        """Raise NotNow if the job must wait: the model's breaker is open, or no calls are left today."""
        if self.model is not None:
            self.model.breaker.check()
            await self.calls.check(job.user_id)

    async def consolidate(self, job: Job) -> list[Decision]:
        """Handle a CONSOLIDATE job: delete the conversation's jobs, and add one for later messages. Returns
        the decisions about facts. Raises ModelError if the model is unavailable, UnreadableAnswer if its
        answer was incomplete twice, Overtaken if the input changed twice, and BudgetSpent if no calls are
        left."""
        try:
            return await self.extract_and_save(job)
        except Overtaken:
            return await self.extract_and_save(job)

    async def extract_and_save(self, job: Job) -> list[Decision]:
        """Read the messages that no summary covers, ask for the changes, and write them. If an answer is
        incomplete, ask once more about half of the messages. Each retry begins with half as many."""
        decisions = list[Decision]()
        most, fault = max(MOST_MESSAGES >> (job.attempts - 1), 1), ""
        for _ in range(2):
            reading = await self.reader.next(job, most, self.model)
            if reading is None:
                async with self.parts.database.write() as connection:
                    await self.parts.queue.finish(connection, job)
                return decisions
            with span("exchange", reading=reading):  # the stored name
                row_ids = {*reading.message_ids, *(fact.id for fact in reading.facts)}
                row_ids.update(id for one in reading.check_ins or () for id in one.messages)
                note_rows({*row_ids, *filter(None, [reading.summary_id])})
                answer = await self._ask(reading, job)
                note(findings=answer, **({} if answer.whole else {"well_formed": False}))
            spend, similar = partial(self.calls.spend, job.user_id), self.parts.writer.similar
            rulings = await confirmed_rulings(self.model, similar, reading, answer, spend)
            decisions += await self.writer.apply_memory_updates_to_user_context(
                reading, answer, rulings, job, rest=most < MOST_MESSAGES
            )
            if answer.whole:
                return decisions
            fault = f"the model's answer about {len(reading.lines)} messages: {answer.faults[0]}"
            most = max(len(reading.lines) // 2, 1)
        raise UnreadableAnswer(fault)

    async def _ask(self, reading: ConsolidationInput, job: Job) -> ConsolidationAnswer:
        """Ask the model for the changes; without a model, or if only the companion spoke, quote the
        messages."""
        if self.model is None or (reading.lines and not reading.from_people):
            return ConsolidationAnswer(summary=quoted_summary(reading, SUMMARY_BUDGET))
        payer = job.user_id
        await self.calls.spend(payer)
        try:
            spend = partial(self.calls.spend, payer)
            answer = await extract_memory_updates(self.model, reading, SUMMARY_BUDGET, spend)
        except Exception as error:
            self._note_call(payer, ok=False, error=f"{type(error).__name__}: {error}"[:200])
            if (fault := model_error(error, self.parts.models.consolidation_settings)) is None:
                raise
            raise fault from error
        self._note_call(
            payer,
            ok=answer.whole,
            facts=len(answer.new_facts),
            preferences=len(answer.new_preferences),
            tasks=len(answer.task_updates),
            without_author=sum(not reading.sources(item.messages) for item in answer.items),
            left_out=[fault.partition(":")[0] for fault in answer.faults],
        )
        return answer

    def _note_call(self, payer: str, *, ok: bool, **details: Any) -> None:
        """Count the call, and log it as one JSON line."""
        self.parts.figures.count(payer, {"consolidations": 1, "applied": int(ok)})
        line = {"event": "memory_extraction", "user_id": payer, "ok": ok} | details
        log.log(logging.INFO if ok else logging.WARNING, json.dumps(line, ensure_ascii=False))
