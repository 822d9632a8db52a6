"""Accept and answer each message of a chat platform once, and update posted replies when stored ones change.

An accepted message has a job until it is answered. If the process is killed, the next one takes the job. The
ids of a reply's posts are stored with the reply (`message_origins`), or with the event if no reply is stored.
A transaction that hides or deletes replies also adds a job, with which the bot deletes their posts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import Place
from memory.records import Message
from memory.sql.engine import Database
from memory.sql.hidden import parts
from memory.sql.jobs.job import ANSWER, POSTS
from memory.sql.jobs.queue import JobQueue
from memory.sql.jobs.statements import when
from memory.sql.messages.message_rows import is_visible, missing, to_message
from memory.sql.tables import Utc, deliveries, forgettings, hidden, message_origins, messages, rests_on, work

KEPT = timedelta(days=7)
"""How long an event's id is stored. No platform delivers an older event again."""
PURGE_EVERY = timedelta(hours=1)
_AT_ONCE = when(bindparam("now", type_=Utc()))
ONLINE = "online"
"""The id of the row with the time when a platform's bot was last online."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored message that a person sent on a chat platform."""

    message: Message
    user: str
    place: Place
    origins: tuple[str, ...]
    """The platform's ids of the messages that make it up."""
    reply: Message | None
    posts: tuple[str, ...]
    """The platform's ids of the messages that show the reply."""


def quote_id(origin: str) -> str:
    """Return the id by which a trace refers to a quoted message of a platform."""
    return str(uuid5(NAMESPACE_URL, origin))


class Deliveries:
    def __init__(self, database: Database, queue: JobQueue) -> None:
        self._database = database
        self.queue = queue
        self._purged_at: datetime | None = None

    async def first(self, source: str, id: str, now: datetime) -> bool:
        """Return whether this is the first call with this event. `id` is unique within `source`."""
        async with self._database.write() as connection:
            return await self._note(connection, source, id, now)

    async def accept(self, origin: str, user: str, now: datetime, version: str = "") -> str | None:
        """Add the job that answers a new message, or with a `version` an edited one. Returns the job's id if
        this process has claimed it. None if this event was accepted before, or if an earlier version is still
        being answered: then the new job runs after that."""
        source, _, id = origin.partition(":")
        event = f"{id} {version}".strip()
        before = select(work.c.id).where(work.c.kind == ANSWER, work.c.about == origin).limit(1)
        async with self._database.write(lock=[origin]) as connection:
            if not await self._note(connection, source, event, now):
                return None
            ours = await connection.scalar(before) is None
            job = await self.queue.add(connection, ANSWER, user, {"posts": []}, now, about=origin, ours=ours)
            this = update(deliveries).where(deliveries.c.source == source, deliveries.c.id == event)
            told = {"job": job.id, "user_id": user}
            await connection.execute(this.values(told))
            return job.id if ours else None

    async def gone(self, jobs: Collection[str]) -> frozenset[str]:
        """Return those of these jobs whose message was deleted on its platform, or its author erased."""
        left = (deliveries.c.job.in_(jobs), deliveries.c.user_id.is_(None))
        return frozenset(row.job for row in await self._database.rows(select(deliveries.c.job).where(*left)))

    async def _note(self, connection: AsyncConnection, source: str, id: str, now: datetime) -> bool:
        event = insert(deliveries).values(source=source, id=id, seen_at=now)
        is_first = (await connection.execute(event.on_conflict_do_nothing())).rowcount == 1
        if self._purged_at is None or now - self._purged_at >= PURGE_EVERY:
            await connection.execute(delete(deliveries).where(deliveries.c.seen_at < now - KEPT))
            self._purged_at = now
        return is_first

    async def posted(self, job: str, posts: Sequence[str]) -> None:
        """Store the ids of the posts of a reply while it is being written."""
        async with self._database.write() as connection:
            kept = update(work).where(work.c.id == job).values(payload={"posts": list(posts)})
            await connection.execute(kept)

    async def answered(
        self, jobs: Collection[str], now: datetime, reply: str | None = None, posts: Sequence[str] = ()
    ) -> None:
        """Delete the jobs of answered messages, and store the ids of the posts with the `reply`, else with
        the question, else with the event. If that row was forgotten meanwhile, the posts are deleted."""
        if not jobs and not (reply and posts):
            return
        asked = select(message_origins.c.message_id).join(work, work.c.about == message_origins.c.origin)
        asked = asked.where(work.c.id.in_(jobs), message_origins.c.posted == 0)
        async with self._database.write() as connection:
            row = reply or await connection.scalar(asked.limit(1))
            await connection.execute(delete(work).where(work.c.id.in_(jobs)))
            events = update(deliveries).where(deliveries.c.job.in_(jobs))
            if posts and row is None:
                kept_with = await connection.execute(
                    events.values(posts=list(posts)).returning(deliveries.c.user_id)
                )
                if None in set(kept_with.scalars()):
                    await _expect(connection, next(iter(jobs)), posts, now)
                return
            await connection.execute(events.values(user_id=None, posts=None))
            if row is None or not posts:
                return
            gone = await missing(connection, [row])
            if await connection.scalar(select(messages.c.id).where(messages.c.id == row)):
                await note_origins(connection, row, posts, posted=True)
            if gone:
                await _expect(connection, row, posts, now)

    async def forget_posts(self, message: str, posts: Collection[str]) -> list[str]:
        """Delete the ids of a reply's posts, because Hachi deletes the posts; the reply stays. Returns the
        posts to delete: a post that now shows a newer reply is not among them."""
        origin, of = message_origins.c.origin, message_origins.c.message_id
        async with self._database.write() as connection:
            await connection.execute(
                delete(message_origins).where(of == message, message_origins.c.posted == 1)
            )
            newer = set(await connection.scalars(select(origin).where(origin.in_(posts), of != message)))
        return [post for post in posts if post not in newer]

    async def forget(self, origin: str, now: datetime) -> None:
        """Forget the events of a message that was deleted on its platform, and schedule the deletion of posts
        whose reply is not stored. If the message is delivered later, it is refused."""
        source, _, id = origin.partition(":")
        edited = deliveries.c.id.startswith(f"{id} ", autoescape=True)
        async with self._database.write(lock=[origin]) as connection:
            await self._note(connection, source, id, now)
            this = and_(deliveries.c.source == source, or_(deliveries.c.id == id, edited))
            await _forget(connection, this, now)

    async def sent(self, origins: Collection[str]) -> Sent | None:
        """Return a person's stored message with one of these ids on the platform, and the reply to it."""
        async with self._database.read() as connection:
            made_of = message_origins.c.message_id
            named = select(made_of).where(
                message_origins.c.origin.in_(origins), message_origins.c.posted == 0
            )
            query = select(messages).where(messages.c.id.in_(named), is_visible())
            row = (await connection.execute(query.order_by(messages.c.seq.desc()).limit(1))).first()
            if row is None:
                return None
            answered = (rests_on.c.derived_id == messages.c.id, rests_on.c.how == "answered")
            replies = select(messages).join(rests_on, rests_on.c.source_id == row.id)
            replies = replies.where(*answered, is_visible())
            reply = (await connection.execute(replies.order_by(messages.c.seq.desc()).limit(1))).first()
            posts = await _origins(connection, reply.id if reply else row.id, posted=True)
            own = await _origins(connection, row.id, posted=False)
        place = Place.of_key(row.place)
        return Sent(to_message(row), row.user_id, place, own, to_message(reply) if reply else None, posts)

    async def origin_of(self, message: str) -> str:
        """Return the platform's id of a person's message, the last one of several; "" if it has none."""
        async with self._database.read() as connection:
            return next(reversed(await _origins(connection, message, posted=False)), "")

    async def stands(self, message: str) -> bool:
        """Return whether a reply is stored and visible, or hidden only because its question was edited."""
        hides = (hidden.c.row_id == message, hidden.c.kind.in_(("message", "told")))
        why = select(forgettings.c.why).join(hidden).where(*hides).distinct()
        async with self._database.read() as connection:
            if await connection.scalar(select(messages.c.id).where(messages.c.id == message)) is None:
                return False
            return set(await connection.scalars(why)) <= {"edited"}

    async def later(self, job: str, error: str, now: datetime) -> None:
        """Schedule another attempt for a message that could not be answered."""
        if found := await self.queue.take(job):
            await self.queue.failed(found, error, now)

    async def release(self, jobs: Collection[str], now: datetime) -> None:
        """Release the jobs of accepted messages, so that the next process answers them."""
        async with self._database.write() as connection:
            mine = update(work).where(work.c.id.in_(jobs))
            await connection.execute(mine.values(claimed_by=None, due_at=now))

    async def here(self, source: str, now: datetime) -> None:
        """Store that the bot of a platform is online and has read all messages until now."""
        new = insert(deliveries).values(source=source, id=ONLINE, seen_at=now)
        async with self._database.write() as connection:
            same = ["source", "id"]
            await connection.execute(new.on_conflict_do_update(index_elements=same, set_={"seen_at": now}))

    async def renew(self) -> None:
        """Renew the claims of this process on the messages that it accepted."""
        await self.queue.renew(ANSWER)

    async def last_here(self, source: str) -> datetime | None:
        """Return when the bot of a platform was last online, if within `KEPT`."""
        query = select(deliveries.c.seen_at).where(deliveries.c.source == source, deliveries.c.id == ONLINE)
        return next((row.seen_at for row in await self._database.rows(query)), None)

    async def private_channels(self, source: str, most: int) -> list[str]:
        """Return the private channels with the newest messages to the bot, from origins
        ``SOURCE:CHANNEL:ID``."""
        sent = message_origins.join(messages, messages.c.id == message_origins.c.message_id)
        theirs = message_origins.c.origin.startswith(f"{source}:", autoescape=True)
        query = select(message_origins.c.origin).select_from(sent).where(theirs, messages.c.place == "")
        rows = await self._database.rows(query.order_by(messages.c.seq.desc()).limit(most * 10))
        return list(dict.fromkeys(row.origin.split(":")[-2] for row in rows))[:most]


async def note_origins(
    connection: AsyncConnection, message_id: str, origins: Sequence[str], *, posted: bool = False
) -> None:
    """Store the platform's ids of a message, or of the posts in which Hachi `posted` it. An id that another
    message had, such as an earlier version, moves to this one."""
    if origins:
        row = {"message_id": message_id, "posted": int(posted)}
        new = insert(message_origins)
        moved = {name: new.excluded[name] for name in row}
        moving = new.on_conflict_do_update(index_elements=["origin"], set_=moved)
        await connection.execute(moving, [{"origin": origin, **row} for origin in origins])


async def tell_platforms(connection: AsyncConnection, ids: Iterable[str], now: datetime) -> None:
    """Schedule an update of these messages' posts. Call this when messages are hidden or shown, and before
    they are deleted."""
    for part in parts(ids):
        posted = (message_origins.c.message_id.in_(part), message_origins.c.posted == 1)
        for id in list(
            await connection.scalars(select(message_origins.c.message_id).where(*posted).distinct())
        ):
            await _expect(connection, id, await _origins(connection, id, posted=True), now)


async def forget_what_came(connection: AsyncConnection, user: str, now: datetime) -> None:
    """Forget a person's pending messages on platforms, and schedule the deletion of posts whose reply is not
    stored."""
    await _forget(connection, deliveries.c.user_id == user, now)


async def _forget(connection: AsyncConnection, which: ColumnElement[bool], now: datetime) -> None:
    which = and_(which, deliveries.c.user_id.is_not(None))
    for row in (await connection.execute(select(deliveries).where(which))).all():
        if row.posts:
            await _expect(connection, row.job, row.posts, now)
    gone = {"user_id": None, "posts": None}
    await connection.execute(update(deliveries).where(which).values(gone))


async def _expect(connection: AsyncConnection, id: str, posts: Sequence[str], now: datetime) -> None:
    payload = {"posts": list(posts)}
    await JobQueue.expect(connection, POSTS, posts[0], payload, now, about=id, due=_AT_ONCE)


async def _origins(connection: AsyncConnection, id: str, *, posted: bool) -> tuple[str, ...]:
    """Return the platform's ids of a message, oldest first."""
    mine = (message_origins.c.message_id == id, message_origins.c.posted == int(posted))
    query = select(message_origins.c.origin).where(*mine)
    query = query.order_by(func.length(message_origins.c.origin), message_origins.c.origin)
    return tuple(await connection.scalars(query))
