"""Apply the answer of a consolidation: facts and tasks, then the profiles, the summary and check-ins."""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent.background.consolidation.answer import ConsolidationAnswer, NewFact
from agent.background.consolidation.input import ConsolidationInput
from agent.background.consolidation.rulings import AnswerRuling
from agent.turn.consolidation_due import ConsolidationDue
from memory.audience import Audience, user_key
from memory.errors import NotFound
from memory.facts.candidate import Provenance
from memory.facts.compare import mentions
from memory.facts.derived import MEMORY_SUMMARY, memory_summary_id, still_readable
from memory.people import check_ins
from memory.people.due_dates import read_time
from memory.people.profile_entries import Entry
from memory.records import Decision, Memory, NewMemory
from memory.sql.jobs.job import Job
from memory.sql.messages.message_rows import Line, missing
from memory.sql.messages.summaries import Written
from memory.sql.rests_on import let_go, record
from memory.sql.tables import active_conversations

if TYPE_CHECKING:
    from agent.wiring.components import Components

log = logging.getLogger("hachi.consolidation")

EVENING = "18:00"
"""The default time of a check-in, if the model names only a day."""


class Overtaken(Exception):
    """The input has changed during the consolidation, so no summary was written."""


@dataclass(frozen=True)
class AnswerWriter:
    parts: "Components"
    due: ConsolidationDue | None
    """None: no further job is added, because the caller reads the following messages itself."""

    async def apply_memory_updates_to_user_context(
        self,
        reading: ConsolidationInput,
        answer: ConsolidationAnswer,
        rulings: Sequence[AnswerRuling],
        job: Job,
        *,
        rest: bool,
    ) -> list[Decision]:
        """Store the facts and tasks. Then, in one transaction, write the profiles and, if the answer is
        complete, the summary, and delete the job; Overtaken rolls it back. With `rest`, the following
        messages are due at once."""
        stated = dict[str, list[str]]()
        decisions = await self._store_facts(reading, answer, rulings, stated)
        await self._update_tasks(reading, answer, stated)
        ended = {one.target_id for one in decisions if one.target_id}.union(*(one.may_end for one in rulings))
        authors = {user_key(person.user) for person in reading.people}
        async with self.parts.database.write(lock={reading.owner, *authors}) as connection:
            summary = await self.update_active_summary(connection, reading, answer, ended)
            for id, messages in stated.items():
                await record(connection, id, messages, "stated")
            for user, entry in _profile_changes(reading, answer):
                await self.parts.profiles.merge_in(connection, user, reading.place, [entry], reading.now)
            if not answer.whole:
                return decisions
            if answer.memory_summary and reading.to_summarise:
                await self._record_memory_summary(connection, reading, answer.memory_summary, summary)
            await _plan_check_ins(connection, reading, answer)
            await self.parts.queue.finish(connection, job)
            if self.due and summary and summary.goes_on and reading.upto > reading.after:
                await self.due.go_on(connection, job, self.parts.clock(), at_once=rest)
        return decisions

    async def update_active_summary(
        self,
        connection: AsyncConnection,
        reading: ConsolidationInput,
        answer: ConsolidationAnswer,
        ended: Collection[str],
    ) -> Written | None:
        """Store the summary and its sources. Returns None if none is to be written, for example because the
        answer is incomplete. Raises Overtaken if one of its sources is gone, or another worker was faster.
        The `ended` facts were just replaced and so withheld the old summary; the new summary is written all
        the same, because it used their replacements."""
        active = active_conversations.c
        condition = active.conversation_id == reading.conversation, active.owner == reading.owner
        row = (await connection.execute(select(active_conversations).where(*condition))).first()
        audience = Audience(
            Audience.of(None if reading.place.private else "", reading.place).keys
            | {user_key(person.user) for person in reading.people}
        )
        fact_ids = {fact.id for fact in reading.facts}
        # a ruling need not supersede anything
        facts = await still_readable(connection, fact_ids, audience, self.parts.clock())
        withheld = bool(row and row.withheld)
        changed = row and (
            row.id != reading.summary_id or (row.revision != reading.revision and not withheld)
        )
        if (
            changed
            or await missing(connection, [*reading.message_ids], reading.owner)
            or await missing(connection, reading.profile_messages)
            or not facts.issuperset(fact_ids - set(ended))
        ):
            raise Overtaken("the messages or facts that it was written from have changed")
        rebuilt = not reading.summary or withheld
        if not answer.whole or (reading.upto == reading.after and not rebuilt):
            return None
        written = await self.parts.summaries.update_in(
            connection,
            reading.conversation,
            reading.owner,
            answer.summary or reading.summary,
            after=reading.after,
            revision=row.revision if row else 0,
            covered=reading.upto,
            now=reading.now,
            rebuilt=rebuilt,
            withheld=bool(reading.earlier) and not answer.summary,
        )
        if written is None:
            raise Overtaken("another summary was written meanwhile")
        await let_go(connection, [written.id] if rebuilt else [])
        sources = reading.mentioned_sources(answer.summary or reading.summary) & (
            facts | reading.profile_messages
        )
        await record(connection, written.id, sources, "covered")
        return written

    async def _record_memory_summary(
        self, connection: AsyncConnection, reading: ConsolidationInput, text: str, summary: Written | None
    ) -> None:
        """Store a summary of the person's facts; its sources are the facts and messages that it mentions."""
        user = reading.people[0].user
        entry = Entry(MEMORY_SUMMARY, "", text, reading.now)
        await self.parts.profiles.merge_in(connection, user, reading.place, [entry], reading.now)
        heard = [*(line.message for line in reading.lines), *reading.earlier]
        sources = reading.mentioned_sources(text) | {one.id for one in heard if mentions(text, one.text)}
        id = memory_summary_id(user, reading.place)
        await let_go(connection, [id])
        await record(connection, id, sources | ({summary.id} if summary else set()), "covered")

    async def _store_facts(
        self,
        reading: ConsolidationInput,
        answer: ConsolidationAnswer,
        rulings: Sequence[AnswerRuling],
        stated: dict[str, list[str]],
    ) -> list[Decision]:
        """Store the new facts, each with the author of its cited messages, and apply the rulings on stored
        facts. Adds to `stated` which messages state which fact."""
        decisions: list[Decision] = []
        for fact in answer.new_facts:
            if not (lines := reading.sources(fact.messages)):
                continue
            decisions.append(decision := await self.store_fact_memory(fact, lines, reading, rulings))
            if decision.id and decision.action != "ignore":
                stated.setdefault(decision.id, []).extend(line.message.id for line in lines)
        authors = {person.user for person in reading.people}
        for ruling in rulings:
            if isinstance(ruling.new, Memory) and ruling.new.user_id in authors:
                origin = Provenance(ruling.new.user_id, self.parts.clock(), reading.place)
                decided = await self.parts.writer.rule(ruling.new.id, ruling.old.id, ruling.ruling, origin)
                decisions += [decided] if decided else []
        return decisions

    async def store_fact_memory(
        self,
        fact: NewFact,
        lines: Sequence[Line],
        reading: ConsolidationInput,
        rulings: Sequence[AnswerRuling],
    ) -> Decision:
        """Store one fact from these messages, with the model's rulings on it."""
        last, on_fact = lines[-1], [one for one in rulings if one.new is fact]
        replaces = next((one.old.id for one in on_fact if one.by_fact), None)
        origin = Provenance(
            user=last.user,
            said_at=last.message.sent_at,
            place=reading.place,
            message_id=last.message.id,
            said="\n".join(line.message.text for line in lines),
            live=True,
            shown=reading.message_ids | {known.id for known in reading.facts},
            confirmed=frozenset(filter(None, [replaces])),
        )
        new_memory = NewMemory(fact.text, fact.tags, fact.ttl, importance=fact.importance, replaces=replaces)
        ruled = {one.old.id: one.ruling for one in on_fact if not one.by_fact}
        [decision] = await self.parts.writer.remember([new_memory], origin, ruled)
        return decision

    async def _update_tasks(
        self, reading: ConsolidationInput, answer: ConsolidationAnswer, stated: dict[str, list[str]]
    ) -> None:
        for task in answer.task_updates:
            if not (lines := reading.sources(task.messages)):
                continue
            try:
                change = await self.parts.tasks.update(
                    lines[-1].user,
                    task.description,
                    task.status,
                    id=task.id,
                    place=reading.place,
                    now=self.parts.clock(),
                    read_at=reading.now,
                    message_id=lines[-1].message.id,
                )
            except NotFound as error:
                log.warning("a consolidation names no task: %s", type(error).__name__)
            else:
                if change.action == "made":
                    stated[change.task.id] = [line.message.id for line in lines]


def _profile_changes(reading: ConsolidationInput, answer: ConsolidationAnswer) -> list[tuple[str, Entry]]:
    """Return the profile changes with their users, each with the messages that it cites, grouped by user."""
    changes: list[tuple[str, Entry]] = []
    for preference in answer.new_preferences:
        if lines := reading.sources(preference.messages):
            messages = frozenset(line.message.id for line in lines)
            entries = preference.entries(lines[-1].message.sent_at)
            changes += [(lines[-1].user, replace(entry, messages=messages)) for entry in entries]
    return sorted(changes, key=lambda change: change[0])  # so that locks are always taken in the same order


async def _plan_check_ins(
    connection: AsyncConnection, reading: ConsolidationInput, answer: ConsolidationAnswer
) -> None:
    """Plan check-ins, at most one new one, and drop those that the messages settle."""
    new = False
    for item in answer.follow_ups if reading.check_ins is not None else ():
        user, lines = reading.people[0].user, reading.sources(item.messages)
        matching = [one for one in reading.check_ins or () if item.id and one.id.startswith(item.id.lower())]
        if not lines or (len(matching) != 1 if item.id else new):
            continue
        for one in matching:
            await check_ins.drop(connection, user, one.id)
        about = item.about or "".join(one.about for one in matching)
        if item.after and about:
            message_ids = dict.fromkeys([id for one in matching for id in one.messages])
            message_ids |= dict.fromkeys(line.message.id for line in lines)
            written = item.after if ":" in item.after else f"{item.after} {EVENING}"
            with suppress(ValueError):  # an unreadable time
                after = read_time(written, reading.zone, reading.now)
                await check_ins.plan(
                    connection, user, about, after, [*message_ids], reading.conversation, reading.now
                )
                new |= not matching
