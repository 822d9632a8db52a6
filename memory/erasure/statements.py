"""Forgets what a person stated: a fact or a message, with everything that shows it, for every reader.

One transaction takes the memory and what it had replaced, the messages that stated it, Hachi's replies that
answered those or repeat it, and the person's tasks that do; it withholds derived texts, cleans waiting jobs,
and adds the job that removes the rest from traces and files. What other people stated is never taken.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place, owners_of, user_key
from memory.erasure import message_removal, restore
from memory.erasure.follow_up import FollowUp, Statements
from memory.erasure.message_removal import ForgottenTexts, Readers
from memory.erasure.repeats import repeats
from memory.erasure.repetition import TELLING, FactWords, Words, asks, identifiers, telling_sentences, words
from memory.erasure.taken import TakenMemories, echoing, near, resting_on, stating_the_same, take, take_tasks
from memory.errors import NotFound
from memory.facts.derived import HeldFacts, withhold, withhold_lost
from memory.records import Forgotten, Memory
from memory.sql.engine import Database
from memory.sql.engine.errors import Overtaken
from memory.sql.jobs import FORGET_OUTSIDE, JobQueue
from memory.sql.memory_rows import fetch
from memory.sql.message_rows import has_text
from memory.sql.rests_on import stated_in
from memory.sql.tables import forgotten, memories, messages, work
from memory.text import sentences

TRIES = 3
"""How often a forgetting is tried while other writers change the same rows."""

Result = TypeVar("Result")


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
        self._clock = clock
        self._follow_up = FollowUp(queue, clock, clean_job, undo_for)

    async def forget(
        self, memory: Memory, user: str, *, asked_in: str | None = None
    ) -> tuple[Forgotten, str]:
        """Forget a memory that the person stated. The person's message `asked_in` asked for it in words: it
        goes too, but not what else it tells. Returns the receipt and the id of the job, claimed by
        the caller, that removes the rest from traces and files. Raises NotFound if `user` did not state
        it."""
        return await _retried(lambda: self._forget(memory, user, asked_in))

    async def _forget(self, memory: Memory, user: str, asked_in: str | None) -> tuple[Forgotten, str]:
        async with self._database.read() as connection:
            echoes = await _echoes(connection, memory, user)
        lock = memory.owners | {user_key(user), f"tasks:{user}"}.union(*(echo.owners for echo in echoes))
        async with self._database.write(lock=lock) as connection:
            teller = await message_removal.teller_words(connection, user)
            same = await stating_the_same(connection, memory, user, teller)
            echoes = await _echoes(connection, memory, user)
            taken = await take(connection, memory, [memory.id, *same], user, self._clock(), echoes)
            readers = Readers(user, taken.owners)
            lost = await _lost(
                connection, readers, taken, taken.messages, taken.contents, teller, asked_in=asked_in
            )
            return await self._follow_up.run(connection, lost)

    async def forget_message(
        self, id: str, user: str, *, asked_in: str | None = None
    ) -> tuple[Forgotten, str]:
        """Forget one message of the person and the memories that rest on it alone; what these had replaced
        holds again. If the message `asked_in` asked for it in words, both go, and the person's other messages
        that state the same. Returns as `forget` does. Raises NotFound if it is no message of `user`, or
        forgotten."""
        return await _retried(lambda: self._forget_message(id, user, asked_in))

    async def _forget_message(self, id: str, user: str, asked_in: str | None) -> tuple[Forgotten, str]:
        async with self._database.read() as connection:
            resting = await fetch(connection, memories.c.id.in_(resting_on([id], user)))
            resting += await _echoes_of_message(connection, id, user)
            heard_in = select(messages.c.place).where(messages.c.id == id, messages.c.place != "")
            place = {str(key) for key in await connection.scalars(heard_in)}
        lock = {user_key(user), f"tasks:{user}"}.union(place, *(memory.owners for memory in resting))
        async with self._database.write(lock=lock) as connection:
            spoken = and_(messages.c.user_id == user, messages.c.role == "user")
            mine = and_(messages.c.id == id, spoken, has_text())
            row = (await connection.execute(select(messages).where(mine).with_for_update())).first()
            if row is None:
                raise NotFound(f"no message {id!r} of {user}'s is left to forget")
            teller = await message_removal.teller_words(connection, user)
            ids = sorted(await connection.scalars(resting_on([id], user)))
            echoes = await _echoes_of_message(connection, id, user)
            taken = await take(connection, None, ids, user, self._clock(), echoes)
            readers = Readers(user, taken.owners or owners_of(user, Place.of_key(row.place)))
            stated = telling_sentences(row.text, teller) if asked_in else []
            lost = await _lost(connection, readers, taken, {id}, stated, teller, asked_in=asked_in)
            receipt, job = await self._follow_up.run(connection, lost)
            return replace(receipt, text=row.text), job

    async def near(self, receipt: Forgotten, known: Sequence[Memory], user: str) -> tuple[Memory, ...]:
        """Which of the `known` memories are near what was taken; see `memory.erasure.taken.near`."""
        async with self._database.read() as connection:
            return await near(connection, receipt.memories, known, user)

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
            await self._follow_up.queue.add(connection, FORGET_OUTSIDE, user, {}, now)  # traces come back
            back = await fetch(connection, memories.c.id.in_(payload["memories"]))
            own = messages.c.id.in_(texts) & (messages.c.role == "user")
            said = (await connection.execute(select(func.count()).where(own))).scalar_one()
        named = next((memory for memory in back if memory.id == payload["named"]), None)
        tasks = len(payload.get("tasks", ()))
        return Forgotten(named, tuple(back), messages=said, replies=len(texts) - said, tasks=tasks)

    async def purge_undo(self) -> list[str]:
        """Delete for good what can no longer be undone. Returns the ids of the jobs, due now, that empty the
        traces which were withheld until then."""
        now = self._clock()
        over = forgotten.c.until <= now
        if not await self._database.rows(select(forgotten.c.id).where(over).limit(1)):
            return []
        async with self._database.write() as connection:
            purged = await connection.execute(delete(forgotten).where(over).returning(forgotten.c.payload))
            named = [id for row in purged.all() for id in row.payload["jobs"]]
            outside = select(work).where(work.c.id.in_(named), work.c.kind == FORGET_OUTSIDE)
            jobs = (await connection.execute(outside)).all()
            for job in jobs:
                ended = {"payload": job.payload | {"until": now.isoformat()}, "due_at": now}
                await connection.execute(update(work).where(work.c.id == job.id).values(**ended))
        await self._database.empty_log()
        return [job.id for job in jobs]


async def _echoes(connection: AsyncConnection, memory: Memory, user: str) -> list[Memory]:
    said_in = await message_removal.sources_of(connection, [memory.id], user)
    return await echoing(connection, [memory.id, *said_in], [memory.content], user)


async def _echoes_of_message(connection: AsyncConnection, id: str, user: str) -> list[Memory]:
    text = await connection.scalar(select(messages.c.text).where(messages.c.id == id)) or ""
    stated = await fetch(connection, memories.c.id.in_(resting_on([id], user)))
    contents = [*sentences(text), *(memory.content for memory in stated)]
    return await echoing(connection, [id, *(memory.id for memory in stated)], contents, user)


async def _lost(
    connection: AsyncConnection,
    readers: Readers,
    taken: TakenMemories,
    named: Collection[str],
    stated: Collection[str],
    teller: Words,
    *,
    asked_in: str | None,
) -> Statements:
    """Delete the tasks that repeat what was taken or what its messages told: those `named` and those that
    show one of the texts `stated`. Returns the tasks, and the messages and replies to empty."""
    heard = await message_removal.heard_by(connection, readers)
    shown = [FactWords.of(content, teller) for content in stated]
    own = message_removal.own(heard, readers.user, {*named, asked_in or ""}, shown)
    told = await _told_in(connection, {id: text for id, text in own.items() if id != asked_in}, taken, teller)
    tasks = await take_tasks(connection, readers, [*taken.contents, *told], teller, shared=taken.shared)
    telling = [sentence for text in told for sentence in telling_sentences(text, teller)]
    described = [task["description"] for task in tasks]
    said = [text for id, text in own.items() if id != asked_in and len(words(text)) >= TELLING]
    facts = [*taken.contents, *said, *described]
    lost = {*taken.ids, *own}
    replies, kept = await message_removal.replies(
        connection, heard, readers, lost, facts, teller, shared=taken.shared
    )
    texts = ForgottenTexts(own, replies, kept)
    return Statements(readers.user, taken, texts, tasks, [*taken.contents, *telling, *described], teller)


async def _told_in(
    connection: AsyncConnection, forgotten: Mapping[str, str], taken: TakenMemories, teller: Words
) -> list[str]:
    """The texts of the forgotten messages without questions that name nothing, and without what stays known:
    sentences that repeat a memory which is left of these messages, and none that was taken."""
    left = select(memories.c.content).where(
        memories.c.id.in_(stated_in(forgotten)), memories.c.id.not_in(taken.ids)
    )
    known = list(await connection.scalars(left.distinct()))

    def stays(sentence: str) -> bool:
        if any(repeats(sentence, fact, teller) for fact in taken.contents):
            return False
        if asks(sentence):
            return not identifiers(sentence)
        return any(repeats(sentence, fact, teller) for fact in known)

    return ["\n".join(s for s in sentences(text) if not stays(s)) for text in forgotten.values()]


async def _retried(act: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `act`, which is tried `TRIES` times while others write the same rows."""
    for _ in range(TRIES - 1):
        try:
            return await act()
        except Overtaken:
            continue
    return await act()
