"""Forgets what a person stated: a fact or a message, with everything that shows it, for every reader.

One transaction takes the memory and what it had replaced, the messages that stated it, Hachi's replies that
answered those or repeat it, and the person's tasks that do; it withholds derived texts, cleans waiting jobs,
and adds the job that removes the rest from traces and files. What other people stated is never taken.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, owners_of, user_key
from memory.erasure import memory_removal, message_removal, restore, task_removal
from memory.erasure.message_removal import ForgottenTexts, Readers
from memory.erasure.repetition import FactWords, ForgottenData, Words, telling_sentences
from memory.errors import NotFound
from memory.facts.derived import HeldFacts, withhold, withhold_lost
from memory.process.spans import new_id
from memory.records import Forgotten, Memory
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.jobs import FORGET_OUTSIDE, UNINDEX, JobQueue
from memory.sql.memory_rows import fetch
from memory.sql.message_rows import kept
from memory.sql.tables import (
    memories,
    memory_owners,
    memory_sources,
    messages,
    work,
)

TRIES = 3
"""How often a forgetting is tried while other writers change the same rows."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a forgetting has removed from the memories."""

    named: Memory | None
    memories: tuple[Memory, ...]
    """Those that lost an owner."""
    gone: tuple[str, ...]
    """Those that no owner has any more."""
    rows: restore.Rows
    owners: frozenset[str]
    """The owner keys that lost one of them."""
    shared: bool
    """Whether somebody else stated the same too."""
    held: HeldFacts
    """What may have lost an owner, as it was."""

    @property
    def ids(self) -> set[str]:
        return {memory.id for memory in self.memories}

    @property
    def messages(self) -> set[str]:
        """The ids of the messages that stated them."""
        return {id for fact in self.held.facts if fact.id in self.ids for id in fact.messages}

    @property
    def contents(self) -> list[str]:
        return [memory.content for memory in self.memories]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What else is removed, since it shows what was forgotten."""

    texts: ForgottenTexts
    tasks: list[restore.Row]
    contents: list[str]
    """What it shows: the texts of the memories, the telling sentences of the message, and the tasks."""


class StatementForgetting:
    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        clock: Callable[[], datetime],
        clean_job: restore.CleanJob,
        undo_for: timedelta,
    ) -> None:
        self._database = database
        self._queue = queue
        self._clock = clock
        self._clean_job = clean_job
        self._undo_for = undo_for

    async def forget(self, memory: Memory, user: str) -> tuple[Forgotten, str]:
        """Forget a memory that the person stated. Returns the receipt and the id of the job, claimed by the
        caller, that removes the rest from traces and files. Raises NotFound if `user` did not state it."""
        return await _retried(lambda: self._forget(memory, user))

    async def _forget(self, memory: Memory, user: str) -> tuple[Forgotten, str]:
        lock = memory.owners | {user_key(user), f"tasks:{user}"}
        async with self._database.write(lock=lock) as connection:
            teller = await message_removal.teller_words(connection, user)
            same = await _same(connection, memory, user, teller)
            taken = await self._take(connection, memory, [memory.id, *same], user)
            readers = Readers(user, taken.owners)
            tasks = await task_removal.take(connection, readers, taken.contents, teller, shared=taken.shared)
            contents = [*taken.contents, *(task["description"] for task in tasks)]
            stated = [FactWords.of(content, teller) for content in taken.contents]
            shown = [FactWords.of(content, teller) for content in contents]
            found = await message_removal.find(
                connection, readers, taken.messages, stated, shown, shared=taken.shared
            )
            return await self._finish(connection, user, taken, _Shown(found, tasks, contents), teller)

    async def forget_message(self, id: str, user: str, *, facts: bool = True) -> tuple[Forgotten, str]:
        """Forget one message of the person and, with `facts`, the memories that rest on it alone; what these
        had replaced holds again. Returns as `forget` does. Raises NotFound if it is no message of `user`, or
        forgotten."""
        return await _retried(lambda: self._forget_message(id, user, facts))

    async def _forget_message(self, id: str, user: str, facts: bool) -> tuple[Forgotten, str]:
        async with self._database.read() as connection:
            resting = await fetch(connection, memories.c.id.in_(await _resting_on(connection, id, user)))
            heard_in = select(messages.c.place).where(messages.c.id == id, messages.c.place != "")
            place = {str(key) for key in await connection.scalars(heard_in)}
        lock = {user_key(user), f"tasks:{user}"}.union(place, *(memory.owners for memory in resting))
        async with self._database.write(lock=lock) as connection:
            mine = and_(messages.c.id == id, messages.c.user_id == user, messages.c.role == "user", kept())
            row = (await connection.execute(select(messages).where(mine).with_for_update())).first()
            if row is None:
                raise NotFound(f"no message {id!r} of {user}'s is left to forget")
            teller = await message_removal.teller_words(connection, user)
            ids = await _resting_on(connection, id, user) if facts else []
            taken = await self._take(connection, None, ids, user)
            contents = [*taken.contents, *telling_sentences(row.text, teller)]
            heard_by = taken.owners or owners_of(user, Place.of_key(row.place))
            readers = Readers(user, heard_by)
            told = [*contents, row.text] if facts else []
            tasks = await task_removal.take(connection, readers, told, teller, shared=taken.shared)
            contents += [task["description"] for task in tasks]
            shown = [FactWords.of(content, teller) for content in contents]
            found = await message_removal.find(connection, readers, [id], (), shown, shared=taken.shared)
            return await self._finish(connection, user, taken, _Shown(found, tasks, contents), teller)

    async def undo(self, id: str, user: str) -> Forgotten:
        """Bring back what was forgotten as `undo_id`, or its first eight characters. Returns what came back.
        Raises NotFound if it can no longer be undone."""
        return await _retried(lambda: self._undo(id, user))

    async def _undo(self, id: str, user: str) -> Forgotten:
        async with self._database.write(lock={user_key(user)}) as connection:
            now = self._clock()
            payload = await restore.take_back(connection, id, user, now)
            payload = await restore.hand_on(connection, user, payload)
            held = await HeldFacts.of(connection, restore.memory_ids(payload))
            await restore.put_back(connection, payload)
            texts = payload["messages"]
            await withhold_lost(connection, held, now, undone=True)  # what is replaced again
            await withhold(connection, now, message_ids=texts, undone=True)  # summaries may tell them again
            await restore.put_back_entries(connection, payload)
            back = await fetch(connection, memories.c.id.in_(payload["memories"]))
            own = messages.c.id.in_(texts) & (messages.c.role == "user")
            said = (await connection.execute(select(func.count()).where(own))).scalar_one()
        named = next((memory for memory in back if memory.id == payload["named"]), None)
        tasks = len(payload.get("tasks", ()))
        return Forgotten(named, tuple(back), messages=said, replies=len(texts) - said, tasks=tasks)

    async def purge_undo(self) -> int:
        """Delete for good what can no longer be undone. Returns how many forgettings that were."""
        now = self._clock()
        async with self._database.read() as connection:
            if not await restore.any_expired(connection, now):
                return 0
        async with self._database.write() as connection:
            purged = await restore.purge(connection, now)
        await self._database.empty_log()
        return purged

    async def _take(
        self, connection: AsyncConnection, named: Memory | None, ids: Sequence[str], user: str
    ) -> _Taken:
        """Unlink these memories from the person. If none was named, what they had replaced holds again."""
        chain = await restore.with_replaced(connection, ids)
        before = await restore.rows_of(connection, chain)
        known = await fetch(connection, memories.c.id.in_(chain))
        held = await HeldFacts.of(connection, chain)
        if named is None:
            await memory_removal.revive(connection, ids, self._clock(), corrected=True)
        gone = await memory_removal.unlink(connection, named, user) if named else []
        for id in ids:
            if named is None or id != named.id:
                gone += await memory_removal.unlink_same(connection, id, user)
        if named:  # a place still has what its teller corrected in private
            for id in await _left_behind(connection, before, user):
                gone += await memory_removal.unlink_same(connection, id, user)
        after = await restore.rows_of(connection, chain)
        lost = restore.changed(before, after)
        links = [row for key, row in lost[memory_owners.name].items() if key not in after[memory_owners.name]]
        still = select(func.count()).where(
            memory_owners.c.memory_id.in_(ids), memory_owners.c.superseded == 0
        )
        lost_ids = {link["memory_id"] for link in links}
        return _Taken(
            named,
            tuple(memory for memory in known if memory.id in lost_ids),
            tuple(gone),
            lost,
            frozenset(link["owner"] for link in links),
            shared=bool((await connection.execute(still)).scalar()),
            held=held,
        )

    async def _finish(
        self,
        connection: AsyncConnection,
        user: str,
        taken: _Taken,
        shown: _Shown,
        teller: Words,
    ) -> tuple[Forgotten, str]:
        """Empty the messages, withhold and clean what repeats them, and add the jobs. Returns the receipt and
        the id of the last job."""
        now, owners, found = self._clock(), {*taken.owners, user_key(user)}, shown.texts
        of_facts = await withhold_lost(connection, taken.held, now, besides=found.all)
        of_texts = await withhold(connection, now, message_ids=found.all)
        entries = [*of_facts.entries, *of_texts.entries]
        since = await _since(connection, taken, found)
        await message_removal.empty(connection, found.all, now)
        data = ForgottenData(
            user,
            frozenset(taken.ids | found.all.keys()),
            tuple(shown.contents),
            tuple(found.all.values()),
            teller,
        )
        earlier = await restore.drop_data(connection, data, taken.messages, self._clean_job)
        theirs = data
        if taken.shared:  # others still know the facts
            theirs = ForgottenData(user, frozenset({*taken.gone, *found.all}), (), (), teller)
        payload = {
            "named": taken.named and taken.named.id,
            "memories": sorted(taken.ids),
            "rows": taken.rows,
            "messages": found.all,
            "outdated": sorted(of_facts.outdated),
            "work": await self._clean_jobs(connection, data, theirs),
            "entries": [restore.encoded(entry) for entry in entries],
            "tasks": shown.tasks,
        }
        outside = data.to_json() | {"since": since.isoformat(), "owners": sorted(owners)}
        jobs = [await self._queue.add(connection, FORGET_OUTSIDE, user, outside, now, ours=True)]
        if taken.gone:
            jobs.append(await self._queue.add(connection, UNINDEX, user, {"ids": list(taken.gone)}, now))
        undo_id = new_id() if self._undo_for else None
        until = now + self._undo_for if undo_id else None
        if undo_id and until:
            payload = restore.with_held(payload | {"jobs": jobs}, earlier)
            await restore.keep(connection, undo_id, user, payload, now=now, until=until)
        derived = of_facts.summaries + of_texts.summaries + len(entries)
        receipt = Forgotten(
            taken.named,
            taken.memories,
            messages=len(found.messages),
            replies=len(found.replies),
            tasks=len(shown.tasks),
            summaries=derived,
            undo_id=undo_id,
            undo_until=until,
        )
        return receipt, jobs[0]

    async def _clean_jobs(
        self, connection: AsyncConnection, data: ForgottenData, theirs: ForgottenData
    ) -> list[restore.Row]:
        """Remove the forgotten data from waiting jobs, and what others lost of it, `theirs`, from those of
        others. Returns the changed rows as they were."""
        cleaned = []
        waiting = select(work).where(work.c.kind.not_in((UNINDEX, FORGET_OUTSIDE)))
        for job in (await connection.execute(waiting)).all():
            lost = data if job.user_id == data.user else theirs
            clean = self._clean_job(job.kind, job.user_id, job.payload, lost)
            if clean == job.payload:
                continue
            cleaned.append(restore.encoded(job._mapping))
            same = work.c.id == job.id
            changed = update(work).where(same).values(payload=clean) if clean else delete(work).where(same)
            await connection.execute(changed)
        return cleaned


async def _retried(act: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `act`, which is tried `TRIES` times while others write the same rows."""
    for _ in range(TRIES - 1):
        try:
            return await act()
        except Overtaken:
            continue
    return await act()


async def _same(connection: AsyncConnection, memory: Memory, user: str, teller: Words) -> list[str]:
    """The person's other memories that state the same."""
    fact = FactWords.of(memory.content, teller)
    told = select(memory_owners.c.memory_id).where(memory_owners.c.owner == user_key(user))
    theirs = or_(memories.c.user_id == user, memories.c.id.in_(told))
    rows = await connection.execute(
        select(memories.c.id, memories.c.content).where(theirs, memories.c.id != memory.id)
    )
    return [row.id for row in rows if fact.same_as(FactWords.of(row.content, teller))]


async def _left_behind(connection: AsyncConnection, before: restore.Rows, user: str) -> list[str]:
    """Which of the memories that the person had `before` they do not have any more."""
    own = user_key(user)
    had = {row["memory_id"] for row in before[memory_owners.name].values() if row["owner"] == own}
    has = select(memory_owners.c.memory_id).where(memory_owners.c.owner == own)
    return sorted(had.difference(await connection.scalars(has.where(memory_owners.c.memory_id.in_(had)))))


async def _resting_on(connection: AsyncConnection, message_id: str, user: str) -> list[str]:
    """The memories that this message of the person states, and no other that is left of theirs."""
    stated = select(memory_sources.c.memory_id).where(memory_sources.c.message_id == message_id)
    also = (
        select(memory_sources.c.memory_id)
        .join(messages, messages.c.id == memory_sources.c.message_id)
        .where(messages.c.id != message_id, messages.c.user_id == user, kept())
    )
    query = select(memories.c.id).where(
        memories.c.id.in_(stated), memories.c.id.not_in(also), memories.c.message_id.is_not(None)
    )
    return sorted((await connection.execute(query)).scalars())


async def _since(connection: AsyncConnection, taken: _Taken, found: ForgottenTexts) -> datetime:
    """When the forgotten was first said; no trace from before shows it."""
    sent = select(func.min(messages.c.sent_at)).where(messages.c.id.in_(found.all))
    first: datetime | None = (await connection.execute(sent)).scalar()
    return min([memory.created_at for memory in taken.memories] + ([first] if first else []))
