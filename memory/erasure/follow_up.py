"""What follows in the transaction that forgets statements: the messages lose their texts, derived texts are
withheld, waiting jobs are cleaned, the undo is kept, and jobs are added that remove the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.erasure import message_removal, restore
from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.message_removal import ForgottenTexts
from memory.erasure.repetition import Words
from memory.erasure.taken import TakenMemories
from memory.facts.derived import Withheld, withhold, withhold_lost
from memory.process.spans import new_id
from memory.records import Forgotten
from memory.sql.jobs import FORGET_OUTSIDE, JobQueue
from memory.sql.tables import forgotten, messages, work


@dataclass(frozen=True, slots=True)
class Statements:
    """What a person has forgotten, and what else shows it."""

    user: str
    taken: TakenMemories
    texts: ForgottenTexts
    tasks: list[restore.Row]
    contents: list[str]
    """What `texts` show: the texts of the memories, the telling sentences of the message, and the tasks."""
    teller: Words

    @property
    def data(self) -> ForgottenData:
        ids = frozenset(self.taken.ids | self.texts.all.keys())
        return ForgottenData(
            self.user, ids, tuple(self.contents), tuple(self.texts.all.values()), self.teller
        )

    @property
    def lost_by_others(self) -> ForgottenData:
        """The same without the facts that others still know."""
        if not self.taken.shared:
            return self.data
        return ForgottenData(self.user, frozenset({*self.taken.gone, *self.texts.all}), (), (), self.teller)


@dataclass(frozen=True)
class FollowUp:
    queue: JobQueue
    clock: Callable[[], datetime]
    clean_job: restore.CleanJob
    undo_for: timedelta

    async def run(self, connection: AsyncConnection, lost: Statements) -> tuple[Forgotten, str]:
        """Returns the receipt, and the id of the job, claimed by the caller, that removes the rest from
        traces and files."""
        since = await _since(connection, lost)
        withheld = await self._withhold(connection, lost)
        await message_removal.empty(connection, lost.texts.all, self.clock())
        await message_removal.drop_client_items(connection, messages.c.user_id == lost.user)
        earlier = await restore.drop_data(connection, lost.data, lost.taken.messages, self.clean_job)
        cleaned = await self._clean_jobs(connection, lost)
        jobs = await self._add_jobs(connection, lost, since)
        undo_id, until = await self._keep(connection, lost, withheld, cleaned, jobs, earlier)
        receipt = Forgotten(
            lost.taken.named,
            lost.taken.memories,
            messages=len(lost.texts.messages),
            replies=len(lost.texts.replies),
            kept=lost.texts.kept,
            tasks=len(lost.tasks),
            summaries=withheld.summaries + len(withheld.entries),
            undo_id=undo_id,
            undo_until=until,
        )
        return receipt, jobs[0]

    async def _withhold(self, connection: AsyncConnection, lost: Statements) -> Withheld:
        now, texts = self.clock(), lost.texts.all
        of_facts = await withhold_lost(connection, lost.taken.held, now)
        of_texts = await withhold(connection, now, message_ids=texts)
        return Withheld(of_facts.summaries + of_texts.summaries, (*of_facts.entries, *of_texts.entries))

    async def _clean_jobs(self, connection: AsyncConnection, lost: Statements) -> list[restore.Row]:
        """Remove the forgotten data from waiting jobs, and what others lost of it from those of others.
        Returns the changed rows as they were."""
        cleaned, data, theirs = [], lost.data, lost.lost_by_others
        waiting = select(work).where(work.c.kind != FORGET_OUTSIDE)
        for job in (await connection.execute(waiting)).all():
            left = data if job.user_id == data.user else theirs
            clean = self.clean_job(job.kind, job.user_id, job.payload, left)
            if clean == job.payload:
                continue
            cleaned.append(restore.encoded(job._mapping))
            same = work.c.id == job.id
            changed = update(work).where(same).values(payload=clean) if clean else delete(work).where(same)
            await connection.execute(changed)
        return cleaned

    async def _add_jobs(self, connection: AsyncConnection, lost: Statements, since: datetime) -> list[str]:
        """Add the jobs that remove the rest from traces and files: what can come back to traces is
        withheld now, and removed when the undo ends. Returns their ids."""
        now = self.clock()
        until = now + self.undo_for
        owners = sorted({*lost.taken.owners, user_key(lost.user)})
        outside = lost.data.to_json() | {"since": since.isoformat(), "owners": owners}
        outside |= {"gone": sorted(lost.lost_by_others.ids), "until": until.isoformat()}
        jobs = [await self.queue.add(connection, FORGET_OUTSIDE, lost.user, outside, now, ours=True)]
        if self.undo_for:
            jobs.append(await self.queue.add(connection, FORGET_OUTSIDE, lost.user, outside, now, due=until))
        return jobs

    async def _keep(
        self,
        connection: AsyncConnection,
        lost: Statements,
        withheld: Withheld,
        cleaned: list[restore.Row],
        jobs: list[str],
        earlier: restore.Held,
    ) -> tuple[str | None, datetime | None]:
        """Keep what was taken for the undo, unless it is off. Returns its id, and until when it is kept."""
        if not self.undo_for:
            return None, None
        taken, now, undo_id = lost.taken, self.clock(), new_id()
        payload = {
            "named": taken.named and taken.named.id,
            "memories": sorted(taken.ids),
            "rows": taken.rows,
            "messages": lost.texts.all,
            "work": cleaned,
            "entries": [restore.encoded(entry) for entry in withheld.entries],
            "tasks": lost.tasks,
            "jobs": jobs,
        }
        until = now + self.undo_for
        held = {"forgotten_at": now, "until": until, "payload": restore.with_held(payload, earlier)}
        await connection.execute(insert(forgotten).values(id=undo_id, user_id=lost.user, **held))
        return undo_id, until


async def _since(connection: AsyncConnection, lost: Statements) -> datetime:
    """When the forgotten was first said; no trace from before shows it."""
    sent = select(func.min(messages.c.sent_at)).where(messages.c.id.in_(lost.texts.all))
    first: datetime | None = (await connection.execute(sent)).scalar()
    return min([memory.created_at for memory in lost.taken.memories] + ([first] if first else []))
