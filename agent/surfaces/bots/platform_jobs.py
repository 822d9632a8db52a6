"""Do what a bot does besides answering: say which model answers, deliver reminders and check-ins, and run the
jobs that need its platform."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from agent.background.check_ins import CheckInMessage
from agent.settings import Settings
from agent.surfaces.bots.answers import Answer, check_in_answer, models_named, reminder_answer
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import IncomingMessage, Unreadable
from agent.surfaces.bots.streamed_reply import Gone
from memory.audience import PRIVATE, Place
from memory.people.due_tasks import Reminder
from memory.sql.jobs.job import ANSWER, CALL, Job, StaleClaim

log = logging.getLogger("hachi.bots")

LOOK_SECONDS = 2.0
"""How often the bot looks for its jobs: how long a reply stands after it was forgotten elsewhere."""
NOTICED = timedelta(minutes=2)
"""After so long at most a lost connection is noticed."""
NOTED_EVERY = timedelta(seconds=10)
"""How often it is noted that the bot is there, and that what it accepted is its own."""
MOST_DMS = 100
"""Direct conversations that are caught up, those used last."""
TOO_LATE_AFTER = timedelta(minutes=10)
"""After this time a message that came before a restart, or while the bot was away, is not answered."""
FORGOTTEN = "(forgotten)"
"""Stands in place of a reply that was forgotten where the platform refuses to delete it."""
REMINDER_WAITS = Answer(
    "I have a reminder for you, but I can't send you direct messages. Please allow them for me."
)
"""Does not say what the reminder is about, because that was said in private."""


def is_late(sent_at: datetime, now: datetime) -> bool:
    return now - sent_at > TOO_LATE_AFTER


def who_answers(settings: Settings) -> str:
    if settings.offline:
        return "no model is configured: the rule-based stand-in answers"
    return f"{models_named(settings)} answers"


@dataclass(eq=False)
class PlatformJobs:
    """Answer the messages that an earlier process left, send reminders and check-ins, and delete the posts of
    forgotten replies."""

    conversations: Conversations
    source: str
    """How the ids of the platform's users and messages begin: ``discord``, ``slack:T1``."""
    catch_up: Callable[[datetime], Awaitable[None]] | None = None
    """Receives what was written since a moment, at which the bot was last there: at the start, and with each
    new connection."""
    connection: Callable[[], object | None] = lambda: "always"
    """Returns the present connection to the platform; None while there is none."""
    heartbeat: Path | None = None
    """Touched while the bot is connected and the database answers."""
    unasked: bool = True
    """Whether check-ins may be sent in direct messages."""
    _noted_at: datetime | None = None
    _caught_up: object | None = None
    """The connection since which nothing is missed."""

    def __post_init__(self) -> None:
        self._calls = set[asyncio.Task[None]]()
        self._deliveries = self.conversations.deliveries

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do the jobs for as long as the block lasts."""
        pet, people = self.conversations.pet, f"{self.source}:"
        stop_reminding = pet.reminders.register(people, self.remind)
        stop_asking = pet.check_ins.register(people, self.check_in) if self.unasked else None
        doing = asyncio.create_task(self._run(), name=f"hachi jobs of {self.source}")
        try:
            yield
        finally:
            stop_reminding()
            if stop_asking:
                stop_asking()
            for task in (doing, *self._calls):
                task.cancel()
            await asyncio.gather(doing, *self._calls, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            for step in (self.do, self._follow_connection, self.conversations.tell_failed):
                try:
                    await step()
                except Exception as error:
                    log.warning("the jobs of %s wait: %s", self.source, error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _follow_connection(self) -> None:
        """Catch up once after each new connection."""
        connection, last = self.connection(), await self._deliveries.last_here(self.source)
        if connection is not None and connection is not self._caught_up:
            if self.catch_up and last:
                await self.catch_up(last - NOTICED)
            self._caught_up = connection
            self._noted_at = None
            await self.do()

    async def remind(self, reminder: Reminder, _: str) -> bool | str:
        """Send a reminder where the task was asked for, else in direct messages. If those are closed, the
        place where they last spoke gets a message that they have a reminder. Each is a new message, because
        edits notify nobody."""
        pet, write = self.conversations.pet, self.conversations.platform.write
        user, place, answer = (reminder.task.user_id, reminder.place, reminder_answer(reminder.task))
        sent = await write(user, place, answer, reminder.asked_in) or await write(user, PRIVATE, answer)
        platform = Place(tuple(self.source.split(":")))
        last = None if sent else await pet.people.places.last_of(user, platform)
        return sent or bool(last and await write(user, last, REMINDER_WAITS))

    async def check_in(self, message: CheckInMessage) -> str:
        """Ask how something went, in direct messages alone."""
        return await self.conversations.platform.write(message.user, PRIVATE, check_in_answer(message))

    async def do(self) -> None:
        """Run the due jobs, and start answering the waiting messages."""
        deliveries, now = self._deliveries, self.conversations.pet.clock()
        if self._noted_at is None or now - self._noted_at >= NOTED_EVERY:
            await deliveries.renew()
            if self._caught_up is not None and self.connection() is self._caught_up:
                await deliveries.here(self.source, now)
                if self.heartbeat:
                    self.heartbeat.touch()
            await deliveries.queue.take_up(now)
            self._noted_at = now
        await self.conversations.pet.conversations.delete_forgotten(f"{self.source}:", self._remove)
        for job in await deliveries.queue.claim_of([ANSWER, CALL], f"{self.source}:", now):
            if job.kind == CALL:  # beside the others: it waits for a server and a model
                task = asyncio.create_task(self._run_call(job), name="hachi call")
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
                continue
            try:
                if not self.conversations.answers(str(job.about)):
                    await self._answer(job)
            except Exception as error:
                log.warning("job %s (%s) waits: %s", job.id, job.kind, error)
                await deliveries.queue.failed(job, str(error), now)

    async def _run_call(self, job: Job) -> None:
        """Run a confirmed call, and tell its person the result."""
        pet, queue = self.conversations.pet, self._deliveries.queue
        try:
            async with queue.working_on(job):
                call, text, reply = await pet.calls.run_job(job)
                origin = await self._deliveries.origin_of(call.message)
                write, answer = self.conversations.platform.write, Answer(text)
                post = text and await write(call.user, call.place, answer, origin)
                if post and reply and reply.message_id:
                    await pet.conversations.posted(reply.message_id, [post])
                await queue.done(job)
        except StaleClaim as error:
            log.warning("%s", error)
        except Exception as error:
            log.warning("job %s (%s) waits: %s", job.id, job.kind, error)
            await queue.failed(job, str(error), pet.clock())

    async def _answer(self, job: Job) -> None:
        conversations, posts = self.conversations, tuple(job.payload["posts"])
        message = await self._fetched(job)
        if message is None:
            for post in posts:
                await self._remove(post)
            await self._deliveries.queue.done(job)
            return
        now, sent = conversations.pet.clock(), await self._deliveries.sent([message.origin])
        message = replace(message, job=job.id, posts=posts)
        if sent and sent.reply:
            conversations.show(message)
        else:
            conversations.add(replace(message, late=is_late(job.created_at or now, now)))

    async def _fetched(self, job: Job) -> IncomingMessage | None:
        """Return the message as it is now; None if it is gone, or the platform does not show it any more."""
        try:
            return await self.conversations.platform.fetch(str(job.about))
        except Unreadable:
            log.warning("message %s is not answered: the platform does not show it any more", job.about)
            return None

    async def _remove(self, post: str) -> None:
        """Delete a post, or where the platform refuses that, leave one line of it."""
        view = self.conversations.platform.posts_at(post)
        with suppress(Gone):
            try:
                await view.remove(view.handle(post))
            except Exception as error:
                log.warning("a forgotten reply is taken back by an edit: %s", error)
                await view.edit(view.handle(post), FORGOTTEN)
