"""Store who has turned check-ins on and which are planned, and decide whether a due one is still asked.

A planned check-in is a job: its payload has the words, the time after which it can be asked, and the ids of
the messages that it rests on. What became of those is looked up whenever it is read. Whoever takes a check-in
deletes its job in the transaction that counts it, so a killed process asks nothing twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.people.due_tasks import named_by
from memory.people.links import LINKED
from memory.people.waking_hours import WakingHours
from memory.sql.engine import Database
from memory.sql.engine.fence import lift_fence
from memory.sql.hidden import link_is_hidden
from memory.sql.jobs.job import CHECK_IN, Job
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import claimable
from memory.sql.memories.replacements import still_replaces
from memory.sql.messages.message_rows import heard_by, is_visible, missing
from memory.sql.rests_on import stated_in
from memory.sql.tables import check_ins, memory_owners, messages, replacements, work

APART = timedelta(days=1)
"""Between two check-ins of one person."""
TOO_LATE = timedelta(days=3)
"""One that could not be asked for so long is not asked any more."""
FARTHEST = timedelta(days=366)
"""What is to happen later than this is not planned."""
MOST_UNANSWERED = 2
"""After so many without a word of the person none is sent until they write again."""
MOST_PLANNED = 10
"""Of one person."""
AT_ONCE = 8
"""How many are asked at once; each waits for a model."""


@dataclass(frozen=True, slots=True)
class CheckIn:
    """What a person is to be asked about, and when."""

    id: str
    about: str
    after: datetime
    """When it has happened …"""
    due: datetime
    """… and when it is to be asked, not before."""
    messages: tuple[str, ...]
    """The ids of the messages it rests on, in order."""
    conversation: str

    @property
    def payload(self) -> dict[str, object]:
        return {
            "about": self.about,
            "after": self.after.isoformat(),
            "messages": list(self.messages),
            "conversation": self.conversation,
        }


@dataclass(frozen=True, slots=True)
class ClaimedCheckIn:
    """A check-in that is asked now, with what was counted before. Nobody else has it."""

    check_in: CheckIn
    asked_at: datetime | None
    unanswered: int


@dataclass(frozen=True)
class CheckIns:
    database: Database
    hours: WakingHours

    async def wanted(self, user: str) -> bool:
        """Return whether the person wants to be asked."""
        asked = check_ins.c.user_id == user, check_ins.c.since.is_not(None)
        return bool(await self.database.rows(select(check_ins.c.user_id).where(*asked)))

    async def want(self, user: str, now: datetime, *, wanted: bool) -> None:
        """Turn check-ins on or off. Turning them off deletes those planned; the time of the last one
        stays."""
        values = {"since": now if wanted else None}
        put = insert(check_ins).values(user_id=user, **values)
        async with self.database.write(lock=[f"check_ins:{user}"]) as connection:
            await connection.execute(put.on_conflict_do_update(index_elements=["user_id"], set_=values))
            if not wanted:
                await connection.execute(delete(work).where(_planned_of([user])))

    async def planned(self, user: str, zone: tzinfo, now: datetime) -> list[CheckIn]:
        """Return the person's planned check-ins whose messages still hold, the next first."""
        async with self.database.read() as connection:
            planned = _planned_of(await _accounts(connection, user))
            rows = await connection.execute(select(work).where(planned).order_by(work.c.due_at, work.c.seq))
            found = [(row.user_id, _check_in(row, row.due_at)) for row in rows]
            held = [one for account, one in found if await _holds(connection, account, one, now)]
        return [replace(one, due=self.hours.next(max(one.after, one.due), zone)) for one in held]

    async def due(self, prefixes: Collection[str], now: datetime) -> list[str]:
        """Return the jobs that are due, oldest first, of people whom a prefix names."""
        theirs = and_(work.c.kind == CHECK_IN, claimable(now), named_by(work.c.user_id, prefixes))
        query = select(work.c.id).where(theirs).order_by(work.c.due_at).limit(AT_ONCE)
        return [row.id for row in await self.database.rows(query)]

    async def take(self, job: Job, zone: tzinfo, now: datetime) -> ClaimedCheckIn | datetime | None:
        """Take a due check-in: return it, with its job gone and counted as asked; or when to look again; or
        None where it is not to be asked any more."""
        user, one = job.user_id, _check_in(job, now)
        async with self.database.read() as connection:
            accounts = await _accounts(connection, user)
        async with self.database.write(lock=[f"check_ins:{one}" for one in accounts]) as connection:
            found = select(check_ins).where(check_ins.c.user_id.in_(accounts)).with_for_update()
            rows = {row.user_id: row for row in await connection.execute(found)}
            row = rows.get(user)
            if row is None or row.since is None or not await _holds(connection, user, one, now):
                return None
            earliest, unanswered = now, 0
            if asked := {one.asked_at: one.unanswered for one in rows.values() if one.asked_at}:
                earliest = max(now, max(asked) + APART)
                answered = await connection.scalar(select(_has_written(user, max(asked))))
                unanswered = 0 if answered else asked[max(asked)]
            if unanswered >= MOST_UNANSWERED:
                return None
            if (due := self.hours.next(earliest, zone)) > now:
                return due
            counted = {"asked_at": now, "unanswered": unanswered + 1}
            await connection.execute(update(check_ins).where(check_ins.c.user_id == user).values(**counted))
            await connection.execute(delete(work).where(work.c.id == job.id))
            Database.after_commit(connection, lift_fence)
        return ClaimedCheckIn(one, row.asked_at, row.unanswered)

    async def release(self, user: str, claim: ClaimedCheckIn, now: datetime, again: datetime | None) -> None:
        """Count a claimed check-in, of which nothing was sent, as not asked; plan it `again` at this time."""
        same = check_ins.c.user_id == user, check_ins.c.since.is_not(None)
        async with self.database.write(lock=[f"check_ins:{user}"]) as connection:
            before = {"asked_at": claim.asked_at, "unanswered": claim.unanswered}
            undone = await connection.execute(update(check_ins).where(*same).values(**before))
            if undone.rowcount and again:
                await JobQueue.add(connection, CHECK_IN, user, claim.check_in.payload, now, due=again)

    async def drop_late(self, now: datetime) -> int:
        """Delete check-ins that nothing could send for too long. Returns how many."""
        late = and_(work.c.kind == CHECK_IN, work.c.due_at < now - TOO_LATE, work.c.claimed_by.is_(None))
        ids = [row.id for row in await self.database.rows(select(work.c.id).where(late).limit(100))]
        return await self.database.run(delete(work).where(late, work.c.id.in_(ids))) if ids else 0


async def plan(
    connection: AsyncConnection,
    user: str,
    about: str,
    after: datetime,
    message_ids: Sequence[str],
    conversation: str,
    now: datetime,
) -> None:
    """Plan a check-in `about` something after this time, in the caller's transaction; none if that is long
    past or too far off, or too many are planned. It rests on those of the messages that this account has."""
    planned = await connection.scalar(select(func.count()).where(_planned_of([user])))
    others = await missing(connection, message_ids, user_key(user))
    mine = tuple(id for id in message_ids if id not in others)
    if mine and now - TOO_LATE < after < now + FARTHEST and (planned or 0) < MOST_PLANNED:
        one = CheckIn("", about, after, after, mine, conversation)
        await JobQueue.add(connection, CHECK_IN, user, one.payload, now, due=after)


async def drop(connection: AsyncConnection, user: str, id: str) -> int:
    """Delete a planned check-in of the person, in the caller's transaction. Returns how many that were."""
    planned = _planned_of(await _accounts(connection, user))
    return (await connection.execute(delete(work).where(planned, work.c.id == id))).rowcount


def is_wanted_by(user: ColumnElement[str]) -> ColumnElement[bool]:
    """Match where this person wants to be asked."""
    return exists().where(check_ins.c.user_id == user, check_ins.c.since.is_not(None))


async def _accounts(connection: AsyncConnection, user: str) -> list[str]:
    """Return this account and the linked ones, which count as one person."""
    return [user, *await connection.scalars(LINKED, {"user": user})]


def _planned_of(accounts: Collection[str]) -> ColumnElement[bool]:
    return and_(work.c.kind == CHECK_IN, work.c.user_id.in_(accounts))


def _check_in(job: Any, due: datetime) -> CheckIn:
    """Read a job, or its row."""
    written = job.payload
    after, message_ids = datetime.fromisoformat(written["after"]), tuple(written["messages"])
    return CheckIn(job.id, written["about"], after, due, message_ids, written["conversation"])


def _has_written(user: str, since: datetime) -> ColumnElement[bool]:
    """Match where the person has written in private since then, on this account or a linked one."""
    theirs = select(literal(user)).union_all(LINKED.params(user=user))
    mine = messages.c.user_id.in_(theirs), messages.c.role == "user", messages.c.place == ""
    return exists().where(*mine, messages.c.sent_at >= since)


async def _holds(connection: AsyncConnection, user: str, one: CheckIn, now: datetime) -> bool:
    """Return whether it may still be asked: it is not late, its messages are there as they were said, nothing
    else has taken the place of a fact that they state, and the person has not written since it happened."""
    owner, stated = user_key(user), stated_in(one.messages)
    there = select(func.count()).where(messages.c.id.in_(one.messages), heard_by(owner), is_visible())
    pair = replacements.c
    replaced = exists().where(
        pair.old_id == memory_owners.c.memory_id,
        pair.owner == owner,
        pair.new_id.not_in(stated),
        still_replaces(),
    )
    ended = exists().where(
        memory_owners.c.owner == owner,
        memory_owners.c.memory_id.in_(stated),
        or_(link_is_hidden(), replaced),
    )
    query = select(there.scalar_subquery() == len(one.messages), ended, _has_written(user, one.after))
    whole, ended_now, written = (await connection.execute(query, {"now": now})).one()
    return bool(whole and not ended_now and not written and now - one.after < TOO_LATE)
